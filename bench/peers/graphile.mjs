// graphile-worker: `node graphile.mjs fill|drain COUNT` beside its node_modules, connected by the environment.
import { Logger, makeWorkerUtils, runOnce } from "graphile-worker";

const [what, count] = [process.argv[2], Number(process.argv[3])];
const payload = { order: 1, customer: "customer-1", status: "paid", note: "x".repeat(30) };
const quiet = new Logger(() => (level, message) => level === "error" && console.error(message));
const preset = {
  worker: {
    connectionString: process.env.DATABASE_URL,
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 2000 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    logger: quiet,
  },
};

if (what === "fill") {
  const utils = await makeWorkerUtils({ preset });
  await utils.migrate();
  for (let first = 0; first < count; first += 5000) {
    const jobs = Array.from({ length: Math.min(5000, count - first) }, () => ({ identifier: "nothing", payload }));
    await utils.addJobs(jobs);
  }
  await utils.release();
} else {
  let began = null, cpu = null, handled = 0;
  const nothing = async () => {
    if (began === null) [began, cpu] = [process.hrtime.bigint(), process.cpuUsage()];
    handled += 1;
  };
  await runOnce({ preset, noHandleSignals: true }, { nothing });
  const spent = process.cpuUsage(cpu);
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  console.log(JSON.stringify({ seconds, cpu: (spent.user + spent.system) / 1e6, handled }));
}

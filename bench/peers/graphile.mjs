// graphile-worker, beside its node_modules and stage.mjs. Tuned as its own performance page suggests.
import { Logger, makeWorkerUtils, run, runOnce } from "graphile-worker";
import { BODY, main } from "./stage.mjs";

const logger = new Logger(() => (level, message) => level === "error" && console.error(message));
const connectionString = process.env.DATABASE_URL ?? "";
const TUNED = {
  concurrentJobs: 24,
  maxPoolSize: 25,
  localQueue: { size: 2000 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};
const preset = (mode) => ({ worker: { connectionString, logger, ...(mode === "tuned" ? TUNED : {}) } });
const tasks = (handled) => ({ nothing: async () => handled(1) });
let utils;

await main({
  async install() {
    utils = await makeWorkerUtils({ preset: preset("default") });
    await utils.migrate();
  },
  async open() {
    utils = await makeWorkerUtils({ preset: preset("default") });
  },
  send: () => utils.addJob("nothing", BODY),
  batch: (size) => utils.addJobs(Array.from({ length: size }, () => ({ identifier: "nothing", payload: BODY }))),
  work: (mode, handled) => run({ preset: preset(mode), noHandleSignals: true }, tasks(handled)),
  drain: (mode, _, handled) => runOnce({ preset: preset(mode), noHandleSignals: true }, tasks(handled)),
});

// pg-boss, beside its node_modules and stage.mjs. It polls; tuned, its handler asks for the next batch at once.
import * as library from "pg-boss";
import { BODY, main } from "./stage.mjs";

const PgBoss = library.PgBoss ?? library.default;
const QUEUE = "nothing";
const LIMIT = 4000; // milliseconds of a drain: with its defaults it takes one message every two seconds
const TUNED = { batchSize: 1000, pollingIntervalSeconds: 0.5 };
const boss = new PgBoss({ max: 4 });
boss.on("error", (error) => console.error(error.message));
let started;
const start = () => (started ??= boss.start());

let worker; // told when there is more: it would wait for its next poll
const hurry = () => worker && boss.notifyWorker(worker);

async function work(options, handled) {
  const id = await boss.work(QUEUE, options, async (jobs) => {
    handled(jobs.length);
    hurry();
  });
  if (options.batchSize) worker = id;
}

await main({
  async install() {
    await start();
    await boss.createQueue(QUEUE);
  },
  open: start,
  send: () => boss.send(QUEUE, BODY),
  async batch(size) {
    const jobs = Array.from({ length: size }, () => ({ name: QUEUE, data: BODY }));
    await (library.PgBoss ? boss.insert(QUEUE, jobs) : boss.insert(jobs));
    hurry();
  },
  async work(mode, handled) {
    await start();
    await work(mode === "tuned" ? TUNED : { pollingIntervalSeconds: 0.5 }, handled);
  },
  async drain(mode, count, handled) {
    let [done, ends] = [0, Date.now() + LIMIT];
    await start();
    await new Promise((resolve, reject) => {
      const more = (number) => {
        handled(number);
        if (!done) ends = Date.now() + LIMIT;
        done += number;
      };
      work(mode === "tuned" ? TUNED : {}, more).catch(reject);
      const look = setInterval(() => (done >= count || Date.now() > ends) && (clearInterval(look), resolve()), 1);
    });
    while (done >= count && (await boss.getQueueSize(QUEUE, { before: "completed" })) > 0);
  },
});

// A player's side of the contest in JavaScript: the verbs of stage.py, `node NAME.mjs VERB …`.
import readline from "node:readline";

export const BODY = { order: 1, customer: "customer-1", status: "paid", note: "x".repeat(30) };
const BATCH = 1000;
const CHURN = 100;
const AHEAD = 400;
const PATIENCE = 5000;
const WARM_UP = { send: 20, batch: 2 };

const clock = () => process.hrtime.bigint();
const seconds = (from) => Number(clock() - from) / 1e9;
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const say = (line) => process.stdout.write(`${line}\n`);
const cpuSince = (before) => {
  const spent = process.cpuUsage(before);
  return (spent.user + spent.system) / 1e6;
};

async function sending(step, units, warmUp) {
  for (let n = 0; n < warmUp; n += 1) await step();
  say("ready");
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (line === "one") {
      say(clock());
      await step();
      continue;
    }
    let done = 0;
    const [cpu, began, length] = [process.cpuUsage(), clock(), Number(line)];
    while (seconds(began) < length) {
      await step();
      done += units;
    }
    say(JSON.stringify({ units: done, seconds: seconds(began), cpu: cpuSince(cpu) }));
  }
}

async function draining(player, mode, count) {
  let [began, cpu, handled] = [0n, null, 0];
  await player.drain(mode, count, (number) => {
    if (!handled) [began, cpu] = [clock(), process.cpuUsage()];
    handled += number;
  });
  const told = { began: Number(began) / 1e9, ended: Number(clock()) / 1e9, cpu: cpuSince(cpu ?? undefined), handled };
  say(JSON.stringify(told));
}

async function working(player) {
  await player.work("default", () => say(clock()));
  say("ready");
  for await (const _ of readline.createInterface({ input: process.stdin }));
}

async function churning(player) {
  let [sent, handled] = [0, 0];
  await player.open();
  await player.work("tuned", (number) => (handled += number));
  say("ready");
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [before, cpu, began, length] = [handled, process.cpuUsage(), clock(), Number(line)];
    while (seconds(began) < length) {
      if (sent - handled < AHEAD) {
        await player.batch(CHURN);
        sent += CHURN;
      } else await pause(1);
    }
    const told = { units: handled - before, seconds: seconds(began), cpu: cpuSince(cpu) };
    const ends = Date.now() + PATIENCE;
    while (handled < sent && Date.now() < ends) await pause(5);
    say(JSON.stringify(told));
  }
}

export async function main(player) {
  const [verb, ...words] = process.argv.slice(2);
  if (verb === "install") await player.install();
  else if (verb === "drain") await draining(player, words[0], Number(words[1]));
  else if (verb === "work") await working(player);
  else if (verb === "churn") await churning(player);
  else {
    await player.open();
    if (verb === "fill") {
      for (let left = Number(words[0]); left > 0; left -= BATCH) await player.batch(Math.min(left, BATCH));
    } else if (verb === "send") await sending(() => player.send(), 1, WARM_UP.send);
    else await sending(() => player.batch(BATCH), BATCH, WARM_UP.batch);
  }
  process.exit(0);
}

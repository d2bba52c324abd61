import { expect, test } from "bun:test";
import { ProcessBench, until } from "../support/ledger-truth-process.ts";
import { workerOf } from "../support/sluice-process.ts";

test("a worker that does not answer is replaced, and the next one serves", async () => {
  await using bench = await ProcessBench.create({ keys: 1 });
  await using serving = await bench.serve();
  const { workerPid } = serving;
  process.kill(workerPid, "SIGSTOP");
  await until("another worker runs", () => ![undefined, workerPid].includes(workerOf(serving.pid)));
  expect(serving.text()).toContain("a worker does not answer and is ended");
}, 120_000);

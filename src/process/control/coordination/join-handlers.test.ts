import { expect, test } from "bun:test";
import { joinsContract } from "../../../../test/contracts/joins-contract.ts";
import { LinkedWorker, type ControlSide } from "../../../../test/support/linked-worker.ts";
import { MemoryReplyStore } from "../../../../test/support/memory-reply-store.ts";
import { SteppedClock } from "../../../../test/support/stepped-clock.ts";
import { MemoryJoins } from "../../../store/coordinator/memory/joins.ts";

const request = { id: "a", requestDigest: "content" };

function controlOf(clock: SteppedClock, ready: ControlSide["ready"] = () => undefined) {
  return { joins: new MemoryJoins(clock), ready, replies: new MemoryReplyStore() };
}

function workersOf(control: ControlSide): readonly [LinkedWorker, LinkedWorker] {
  const workers = [new LinkedWorker(), new LinkedWorker()] as const;
  for (const worker of workers) worker.connect(control);
  return workers;
}

joinsContract("over links", () => {
  const clock = new SteppedClock();
  const [one, other] = workersOf(controlOf(clock));
  const settle = async (): Promise<void> => {
    for (let round = 0; round < 2; round += 1) {
      for (const worker of [one, other]) await worker.settle();
    }
  };
  return {
    one: one.joins,
    other: other.joins,
    oneDies: () => one.disconnect(),
    settle,
    async waitLong() {
      await clock.runScheduled();
      await settle();
    },
  };
});

test("a new control process learns who owns what before it decides", async () => {
  const clock = new SteppedClock();
  const [one, other] = workersOf(controlOf(clock));
  const owned = one.joins.claim(request);
  const unanswered = other.joins.claim({ ...request, id: "b" }).catch((error: unknown) => error);
  await one.settle();
  expect(await owned).toBe("owner");
  for (const worker of [one, other]) worker.disconnect();
  expect(await unanswered).toMatchObject({ name: "LinkLost" });
  const reported = Promise.withResolvers<void>();
  let ready: Promise<void> | undefined = reported.promise;
  const control = controlOf(clock, () => ready);
  other.connect(control);
  const early = other.joins.claim(request);
  await other.settle();
  one.connect(control);
  await one.settle();
  ready = undefined;
  reported.resolve();
  await other.settle();
  expect(await early).toBe("ended");
  const late = other.joins.claim(request);
  await other.settle();
  one.joins.release("a");
  await one.settle();
  await other.settle();
  expect(await late).toBe("ended");
  expect(control.joins.size).toBe(0);
});

import { expect, test } from "bun:test";
import { virtualClock } from "../../../../test/support/virtual-clock.ts";
import type { WireBound } from "../../link/place-wire.ts";
import { ScarcePlaces } from "./scarce-places.ts";

const bound: WireBound = ["upstream", "up"];

function start() {
  const { clock, advance } = virtualClock();
  const told: string[] = [];
  let isPlenty = true;
  const scarce = new ScarcePlaces({ clock, isPlenty: () => isPlenty });
  const newWorker = () => {
    const answers: PromiseWithResolvers<void>[] = [];
    const worker = {
      askScarce: (bounds: readonly WireBound[]) => {
        told.push(`scarce ${bounds.join()}`);
        const answer = Promise.withResolvers<void>();
        answers.push(answer);
        return answer.promise;
      },
      tellPlenty: (bounds: readonly WireBound[]) => void told.push(`plenty ${bounds.join()}`),
    };
    scarce.join(worker);
    return { worker, answers };
  };
  const setPlenty = (value: boolean): void => {
    isPlenty = value;
  };
  return { advance, told, scarce, newWorker, setPlenty };
}

test("places are recalled once, until all workers have given back what they kept", async () => {
  const { told, scarce, newWorker } = start();
  const [one, other] = [newWorker(), newWorker()];
  const first = scarce.recall([bound]);
  const second = scarce.recall([["pool", "p"], bound]);
  expect(told).toEqual(["scarce ", "scarce ", ...twice("upstream,up"), ...twice("pool,p")]);
  let isRecalled = false;
  void second?.then(() => {
    isRecalled = true;
  });
  one.answers[1]?.resolve();
  other.answers[1]?.resolve();
  await first;
  expect(isRecalled).toBe(false);
  expect(scarce.recall([bound])).toBeUndefined();
  for (const { answers } of [one, other]) answers[2]?.resolve();
  await second;
  expect(scarce.recall([["pool", "p"], bound])).toBeUndefined();
});

test("a worker that hangs holds up nobody after its time", async () => {
  const { scarce, newWorker } = start();
  const { answers } = newWorker();
  const recalled = scarce.recall([bound]);
  answers[1]?.reject(new Error("no answer came in time"));
  await recalled;
  expect(scarce.recall([bound])).toBeUndefined();
});

test("places are plenty after a second in which few were used and none was missing", async () => {
  const { advance, told, scarce, newWorker, setPlenty } = start();
  const { answers } = newWorker();
  const recalled = scarce.recall([bound]);
  answers[1]?.resolve();
  await recalled;
  advance(600);
  void scarce.recall([bound]);
  advance(600);
  expect(told.at(-1)).toBe("scarce upstream,up");
  setPlenty(false);
  advance(5_000);
  expect(told.at(-1)).toBe("scarce upstream,up");
  setPlenty(true);
  advance(1_000);
  expect(told.at(-1)).toBe("plenty upstream,up");
  expect(scarce.recall([bound])).toBeDefined();
});

test("a worker that joins is told first what is scarce", () => {
  const { told, scarce, newWorker } = start();
  expect(scarce.recall([bound])).toBeUndefined();
  newWorker();
  expect(told).toEqual(["scarce upstream,up"]);
});

function twice(text: string): readonly string[] {
  return [`scarce ${text}`, `scarce ${text}`];
}

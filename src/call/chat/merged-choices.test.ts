import { expect, test } from "bun:test";
import fc from "fast-check";
import type { EndSignal } from "../../domain/waiting/end-signal.ts";
import type { ChatEvent } from "../../domain/chat/answer.ts";
import { nextOf } from "../../domain/waiting/flow.ts";
import type { EventBatches, OpenStream } from "../../upstream-client/event-reader.ts";
import { MergedChoices } from "./merged-choices.ts";

type Batch = readonly ChatEvent[];

/** A stream of prepared batches that counts its reads. */
class PreparedStream implements EventBatches<ChatEvent> {
  reads = 0;
  isCancelled = false;
  readonly #batches: readonly Batch[];

  constructor(batches: readonly Batch[]) {
    this.#batches = batches;
  }

  take(): Batch | undefined {
    this.reads += 1;
    return this.#batches[this.reads - 1];
  }

  get isOver(): boolean {
    return this.reads > this.#batches.length;
  }

  whenReady(): void {}

  cancel(): void {
    this.isCancelled = true;
  }
}

const text = (content: string): ChatEvent => ({ type: "text-delta", choice: 0, text: content });
const start: ChatEvent = {
  type: "answer-start",
  systemFingerprint: undefined,
  serviceTier: undefined,
};
const signal = new AbortController().signal;
const onAllOpen = (): void => undefined;
const noMore = () => Promise.reject(new Error("no more choices"));

function opened(streams: readonly PreparedStream[]): OpenStream<ChatEvent>[] {
  return streams.map((rest) => ({ first: [start, text("first ")], rest }));
}

async function readAll(merged: MergedChoices): Promise<ChatEvent[]> {
  const events: ChatEvent[] = [];
  for (let batch = await nextOf(merged); batch !== undefined; batch = await nextOf(merged)) {
    expect(batch.length).toBeGreaterThan(0);
    events.push(...batch);
  }
  return events;
}

test("streams are read on demand: nothing is read ahead", async () => {
  const endless = Array.from({ length: 1_000 }, () => [text("x")]);
  const streams = [new PreparedStream(endless), new PreparedStream(endless)];
  const merged = new MergedChoices({
    choices: 2,
    opened: opened(streams),
    open: noMore,
    onAllOpen,
    signal,
  });
  for (let taken = 1; taken <= 20; taken += 1) {
    await nextOf(merged);
    await Bun.sleep(0);
    const reads = streams.reduce((sum, stream) => sum + stream.reads, 0);
    // Both begin with a batch that was read before.
    expect(reads).toBe(Math.max(0, taken - 2));
  }
});

test("the request is let go once all streams are open, or when the answer is cancelled", () => {
  let ends = 0;
  const all = { opened: opened([new PreparedStream([])]), open: noMore, signal };
  const merged = (choices: number): MergedChoices =>
    new MergedChoices({ ...all, choices, onAllOpen: () => void (ends += 1) });
  merged(1).cancel();
  expect(ends).toBe(1);
  const waiting = merged(2);
  expect(ends).toBe(1);
  waiting.cancel();
  waiting.cancel();
  expect(ends).toBe(2);
});

test("choices take turns: a busy stream does not hold up the others", async () => {
  const endless = Array.from({ length: 1_000 }, () => [text("x")]);
  const streams = [new PreparedStream(endless), new PreparedStream(endless)];
  const merged = new MergedChoices({
    choices: 2,
    opened: opened(streams),
    open: noMore,
    onAllOpen,
    signal,
  });
  for (let taken = 0; taken < 100; taken += 1) await nextOf(merged);
  for (const { reads } of streams) expect(reads).toBe(49);
});

test("events of every choice arrive in order and under its own index", async () => {
  const anyBatches = fc.array(fc.array(fc.string(), { minLength: 1, maxLength: 3 }), {
    maxLength: 6,
  });
  const anyChoices = fc.array(anyBatches, { minLength: 1, maxLength: 12 });
  const anyLimit = fc.integer({ min: 1, max: 8 });
  await fc.assert(
    fc.asyncProperty(anyChoices, anyLimit, async (choices, limit) => {
      const streams = choices.map(
        (batches) => new PreparedStream(batches.map((batch) => batch.map(text))),
      );
      let open = Math.min(limit, streams.length);
      const merged = new MergedChoices({
        choices: streams.length,
        opened: opened(streams.slice(0, open)),
        open: () => Promise.resolve(opened(streams.slice(open++, open))[0] ?? noMore()),
        onAllOpen,
        signal,
      });
      const events = await readAll(merged);
      expect(await nextOf(merged)).toBeUndefined();
      for (const [choice, batches] of choices.entries()) {
        const own = events.flatMap((event) =>
          event.type === "text-delta" && event.choice === choice ? [event.text] : [],
        );
        expect(own).toEqual(["first ", ...batches.flat()]);
      }
      expect(events.filter(({ type }) => type === "answer-start")).toHaveLength(1);
    }),
  );
});

test("a failure ends every stream, and is thrown after the earlier batches", async () => {
  const sound = new PreparedStream(Array.from({ length: 100 }, () => [text("x")]));
  const broken = new PreparedStream([]);
  broken.take = () => {
    throw new Error("broke off");
  };
  const streams = opened([sound, broken]);
  const merged = new MergedChoices({
    choices: 2,
    opened: streams,
    open: noMore,
    onAllOpen,
    signal,
  });
  const failure = await readAll(merged).catch((error: unknown) => error);
  expect(failure).toEqual(new Error("broke off"));
  expect([sound.isCancelled, broken.isCancelled]).toEqual([true, true]);
  expect(await nextOf(merged)).toBeUndefined();
});

test("a stream that opens after the cancellation is cancelled too", async () => {
  const late = new PreparedStream([]);
  let finishOpening: (stream: OpenStream<ChatEvent>) => void = () => undefined;
  let openingSignal: EndSignal = signal;
  const merged = new MergedChoices({
    choices: 2,
    opened: opened([new PreparedStream([])]),
    open: (_choice, own) => {
      openingSignal = own;
      return new Promise((resolve) => {
        finishOpening = resolve;
      });
    },
    onAllOpen,
    signal,
  });
  await nextOf(merged);
  void nextOf(merged);
  await Bun.sleep(1);
  merged.cancel();
  expect(openingSignal.aborted).toBe(true);
  finishOpening({ first: [text("late")], rest: late });
  await Bun.sleep(1);
  expect(late.isCancelled).toBe(true);
});

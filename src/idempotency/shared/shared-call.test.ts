import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import {
  done,
  failure,
  frame,
  settle,
  SharedBench,
  SteppedFrames,
  type Caller,
} from "../../../test/support/shared-answers.ts";
import { AnswerMemory } from "./answer-memory.ts";

const frames = ["a", "b", "c"].map(frame);
const whole = [...frames, done];
const wholeText = whole.join("");

describe("a streamed answer that is shared", () => {
  test("is complete for the first caller and for those that join in the middle or at the end", async () => {
    const source = new SteppedFrames(whole);
    const bench = new SharedBench(source);
    const first = bench.join();
    bench.call.start();
    const reading = first.readAll();
    source.allow(2);
    await settle();
    expect(first.text).toBe(frames.slice(0, 2).join(""));
    const second = bench.join().readAll();
    source.allow(1);
    await settle();
    const third = bench.join().readAll();
    source.allow(1);
    expect(await Promise.all([reading, second, third])).toEqual([wholeText, wholeText, wholeText]);
    expect([bench.runs, source.asked, bench.ends]).toEqual([1, 4, 1]);
    expect(bench.kept).toEqual([
      { headers: { "content-type": "text/event-stream" }, isStreamed: true, text: wholeText },
    ]);
    expect(bench.memory.heldBytes).toBe(0);
  });

  test("is kept before any caller gets its end", async () => {
    const source = new SteppedFrames(whole);
    const keeping = Promise.withResolvers<void>();
    const bench = new SharedBench(source, { keep: () => keeping.promise });
    const caller = bench.join();
    bench.call.start();
    const reading = caller.readAll();
    source.allow(4);
    await settle();
    expect(caller.text).toBe(frames.join(""));
    expect(bench.ends).toBe(0);
    // After this, leaving or joining changes nothing.
    const late = bench.join();
    const lateReading = late.readAll();
    caller.leave();
    await settle();
    expect([source.cancels, bench.ends]).toEqual([0, 0]);
    keeping.resolve();
    expect(await lateReading).toBe(wholeText);
    await reading;
    expect([source.cancels, bench.ends]).toEqual([0, 1]);
  });

  test("asks for no more than the fastest reader wants", async () => {
    const source = new SteppedFrames(whole);
    const bench = new SharedBench(source);
    const fast = bench.join();
    const slow = bench.join();
    bench.call.start();
    await Promise.all([fast.reader.answer(), slow.reader.answer()]);
    source.allow(4);
    await fast.read();
    await fast.read();
    await settle();
    expect(source.asked).toBe(2);
    expect(await slow.read()).toBe(frames.slice(0, 2).join(""));
    expect(source.asked).toBe(2);
  });

  test("continues when the first caller leaves, and ends at once when the last does", async () => {
    const source = new SteppedFrames(whole);
    const bench = new SharedBench(source);
    const first = bench.join();
    const second = bench.join();
    bench.call.start();
    await Promise.all([first.reader.answer(), second.reader.answer()]);
    source.allow(1);
    await first.read();
    first.leave();
    expect([source.cancels, bench.ends, bench.signal?.aborted]).toEqual([0, 0, false]);
    expect(await second.read()).toBe(frames[0]);
    second.leave();
    expect([source.cancels, bench.ends, bench.signal?.aborted]).toEqual([1, 1, true]);
    await settle();
    expect(bench.kept).toEqual([]);
    expect(bench.memory.heldBytes).toBe(0);
  });

  test("that fails is not kept, and fails for all callers", async () => {
    const source = new SteppedFrames([frame("a"), failure]);
    const bench = new SharedBench(source);
    const callers = [bench.join(), bench.join()];
    bench.call.start();
    const reading = callers.map((caller) => caller.readAll());
    source.allow(2);
    const text = frame("a") + failure;
    expect(await Promise.all(reading)).toEqual([text, text]);
    expect([bench.kept, bench.ends, source.cancels]).toEqual([[], 1, 0]);
    expect(bench.memory.heldBytes).toBe(0);
  });

  test("ends at a caller's deadline for that caller, and continues for the others", async () => {
    const source = new SteppedFrames(whole);
    const bench = new SharedBench(source);
    const hasty = bench.join(1);
    const patient = bench.join();
    bench.call.start();
    const reading = [hasty.readAll(), patient.readAll()];
    source.allow(1);
    await Bun.sleep(20);
    expect(hasty.text).toStartWith(frame("a"));
    expect(hasty.text).toContain('"code":"deadline_exceeded"');
    expect(hasty.hasEnded).toBe(true);
    source.allow(3);
    expect((await Promise.all(reading))[1]).toBe(wholeText);
    expect(bench.kept).toHaveLength(1);
  });

  test("is ended by the deadline of the last caller, with the reason", async () => {
    const source = new SteppedFrames(whole);
    const bench = new SharedBench(source);
    const caller = bench.join(1);
    bench.call.start();
    const reading = caller.readAll();
    source.allow(1);
    expect(await reading).toContain('"code":"deadline_exceeded"');
    expect(bench.signal?.reason).toBeInstanceOf(GatewayError);
    // A real stream observes the signal; this one has none.
    source.allow(1);
    await settle();
    expect([source.cancels, bench.ends]).toEqual([1, 1]);
    expect(bench.kept).toEqual([]);
  });
});

describe("an answer that is too large", () => {
  const long = Array.from({ length: 20 }, (_, index) => frame(`${index}`.padStart(100, "x")));
  const longAnswer = [...long, done];

  test("reaches its readers, cannot be joined any more, and is recorded as too large", async () => {
    const source = new SteppedFrames(longAnswer);
    const bench = new SharedBench(source, { limitBytes: 1_000 });
    const caller = bench.join();
    bench.call.start();
    const reading = caller.readAll();
    source.allow(8);
    await settle();
    expect(bench.call.isTooLarge).toBe(false);
    source.allow(1);
    await settle();
    expect(bench.call.isTooLarge).toBe(true);
    expect(bench.memory.heldBytes).toBe(0);
    source.allow(12);
    expect(await reading).toBe(longAnswer.join(""));
    expect(bench.kept).toEqual([undefined]);
  });

  test("drops only the reader that lags by more than is held", async () => {
    const source = new SteppedFrames(longAnswer);
    const bench = new SharedBench(source, { limitBytes: 1_000 });
    const fast = bench.join();
    const slow = bench.join();
    const idle = bench.join();
    bench.call.start();
    await Promise.all([fast, slow, idle].map(({ reader }) => reader.answer()));
    const reading = fast.readAll();
    source.allow(5);
    await settle();
    expect(await slow.read()).toBe(long.slice(0, 5).join(""));
    source.allow(6);
    await settle();
    // The idle one lags by eleven frames, the slow one by six.
    expect(await idle.read()).toContain('"code":"answer_not_kept"');
    expect(await idle.read()).toBeUndefined();
    expect(await slow.read()).toBe(long.slice(5, 11).join(""));
    source.allow(10);
    await settle();
    expect(await reading).toBe(longAnswer.join(""));
    expect(await slow.read()).toContain('"code":"answer_not_kept"');
    expect(source.cancels).toBe(0);
  });

  test("never drops its only reader", async () => {
    const source = new SteppedFrames(longAnswer);
    const bench = new SharedBench(source, { limitBytes: 300 });
    const slow = bench.join();
    const leaving = bench.join();
    bench.call.start();
    await Promise.all([slow.reader.answer(), leaving.reader.answer()]);
    source.allow(2);
    for (let count = 0; count < 2; count += 1) await leaving.read();
    const waiting = leaving.read();
    leaving.leave();
    await waiting;
    source.allow(22);
    expect(await slow.readAll()).toBe(longAnswer.join(""));
  });

  test("is one that finds no room in the memory of all calls", async () => {
    const source = new SteppedFrames(whole);
    const bench = new SharedBench(source);
    bench.memoryLimitBytes = 30;
    const caller = bench.join();
    bench.call.start();
    const reading = caller.readAll();
    source.allow(4);
    expect(await reading).toBe(wholeText);
    expect(bench.kept).toEqual([undefined]);
    expect(bench.memory.heldBytes).toBe(0);
  });
});

describe("when the memory of all calls is used up", () => {
  const calls = 10;
  const memoryLimitBytes = 450_000;
  const pieces = Array.from({ length: 20 }, (_, index) => frame(`${index}`.padStart(10_000, "x")));
  const answer = [...pieces, done];

  /** For a call whose answer has begun. */
  async function readRest(caller: Caller): Promise<string> {
    while ((await caller.read()) !== undefined);
    return caller.text;
  }

  async function startAll(memory: AnswerMemory) {
    return Promise.all(
      Array.from({ length: calls }, async () => {
        const source = new SteppedFrames(answer);
        const bench = new SharedBench(source, { limitBytes: 1_000_000, memory });
        const [fast, idle] = [bench.join(), bench.join()];
        bench.call.start();
        await Promise.all([fast.reader.answer(), idle.reader.answer()]);
        return { source, bench, fast, idle };
      }),
    );
  }

  test("slow readers beyond it end with an error, and the others get everything", async () => {
    const memory = new AnswerMemory(() => memoryLimitBytes);
    const started = await startAll(memory);
    const reading = started.map(({ fast }) => fast.readAll());
    for (const _ of answer) {
      for (const { source } of started) source.allow();
      await settle();
      expect(memory.heldBytes).toBeLessThanOrEqual(memoryLimitBytes);
    }
    const all = answer.join("");
    expect(await Promise.all(reading)).toEqual(started.map(() => all));
    const texts = await Promise.all(started.map(({ idle }) => readRest(idle)));
    // Readers that had read nothing got either the whole answer or an error.
    const held = texts.filter((text) => text === all);
    const behind = texts.filter((text) => text.includes('"code":"answer_not_kept"'));
    expect(held.length).toBeGreaterThan(0);
    expect(held.length * all.length).toBeLessThanOrEqual(memoryLimitBytes + calls * 16_384);
    expect(held.length + behind.length).toBe(calls);
    expect(memory.heldBytes).toBe(0);
  });

  test("a reader that is a little behind continues", async () => {
    const source = new SteppedFrames(whole);
    const bench = new SharedBench(source, { memory: new AnswerMemory(() => 0) });
    const [fast, slow] = [bench.join(), bench.join()];
    bench.call.start();
    await Promise.all([fast.reader.answer(), slow.reader.answer()]);
    const reading = fast.readAll();
    source.allow(2);
    await settle();
    expect(await slow.read()).toBe(frames.slice(0, 2).join(""));
    source.allow(2);
    expect(await reading).toBe(wholeText);
    expect(await readRest(slow)).toBe(wholeText);
  });
});

describe("a whole answer that is shared", () => {
  const reply = { status: 200, headers: { "content-type": "application/json" }, body: "{}" };

  test("reaches all callers once it is kept", async () => {
    const answering = Promise.withResolvers<typeof reply>();
    const bench = new SharedBench(new SteppedFrames([]), { run: () => answering.promise });
    const callers = [bench.join(), bench.join()];
    bench.call.start();
    const waiting = callers.map(({ reader }) => reader.answer());
    callers[0]?.leave();
    answering.resolve(reply);
    expect(waiting[0]).rejects.toThrow("left");
    expect(await waiting[1]).toBe(reply);
    expect(bench.kept).toEqual([{ headers: reply.headers, isStreamed: false, text: "{}" }]);
    expect(bench.ends).toBe(1);
  });

  test("of bytes is kept as their text", async () => {
    const body = Buffer.from('{"text":"\u00e9"}');
    const bench = new SharedBench(new SteppedFrames([]), {
      run: () => Promise.resolve({ ...reply, body: new Uint8Array(body) }),
      limitBytes: body.byteLength,
    });
    const caller = bench.join();
    bench.call.start();
    await caller.reader.answer();
    expect(bench.kept).toEqual([
      { headers: reply.headers, isStreamed: false, text: body.toString() },
    ]);
  });

  test("that is too large reaches all callers, and is recorded as too large", async () => {
    const bench = new SharedBench(new SteppedFrames([]), {
      run: () => Promise.resolve(reply),
      limitBytes: 1,
    });
    const caller = bench.join();
    bench.call.start();
    expect(await caller.reader.answer()).toBe(reply);
    expect(bench.kept).toEqual([undefined]);
  });

  test("that fails, fails for all callers", async () => {
    const error = new GatewayError("model_unavailable", { message: "down" });
    const bench = new SharedBench(new SteppedFrames([]), { run: () => Promise.reject(error) });
    const callers = [bench.join(), bench.join()];
    bench.call.start();
    const answers = await Promise.allSettled(callers.map(({ reader }) => reader.answer()));
    expect(answers).toEqual([
      { status: "rejected", reason: error },
      { status: "rejected", reason: error },
    ]);
    expect([bench.kept, bench.ends]).toEqual([[], 1]);
  });

  test("ends at once when the last caller leaves, and a late answer is not kept", async () => {
    const answering = Promise.withResolvers<typeof reply>();
    let signal: AbortSignal | undefined;
    const bench = new SharedBench(new SteppedFrames([]), {
      run: (given) => {
        signal = given;
        return answering.promise;
      },
    });
    const caller = bench.join();
    bench.call.start();
    const waiting = caller.reader.answer();
    caller.leave();
    expect(waiting).rejects.toThrow("left");
    expect([signal?.aborted, bench.ends]).toEqual([true, 1]);
    answering.resolve(reply);
    await settle();
    expect([bench.kept, bench.ends]).toEqual([[], 1]);
  });

  test("a stream that opens after all callers have left is stopped", async () => {
    const source = new SteppedFrames(whole);
    const opening = Promise.withResolvers<Awaited<ReturnType<typeof open>>>();
    const bench = new SharedBench(source, { run: () => opening.promise });
    const caller = bench.join();
    bench.call.start();
    const waiting = caller.reader.answer();
    caller.leave();
    expect(waiting).rejects.toThrow("left");
    opening.resolve(await open(source));
    await settle();
    expect(source.cancels).toBe(1);
  });
});

function open(frames: SteppedFrames) {
  const headers = {};
  return Promise.resolve({ status: 200, headers, frames, keepAlive: "", isEarly: false } as const);
}

import { expect, test } from "bun:test";
import fc from "fast-check";
import { modelOf } from "../../../test/support/pipeline-fixtures.ts";
import { measureChatInput, TokenEstimator } from "./estimate.ts";
import { readChatRequest } from "../../wires/chat/read-request.ts";

const model = modelOf({ maxOutputTokens: 5_000, contextWindow: 100_000 });
const subject = { accountId: "acct_a", keyId: "key_a", model, nowMs: 0 };
const size = { textBytes: 3_000, attachmentTokens: 0 };
const uncapped = { cap: undefined, choices: 1 };

function estimator(): TokenEstimator {
  return new TokenEstimator({ defaultOutputTokens: 1_000, nowMs: 0 });
}

const usageOf = (inputTokens: number, outputTokens: number) => ({
  inputTokens,
  outputTokens,
  cachedInputTokens: 0,
  reasoningTokens: 0,
});

test("before anything is learned the input is a third of its bytes and the output the default", () => {
  const estimate = estimator().estimate(subject, size, uncapped);
  expect(estimate.inputTokens).toBe(1_000);
  expect(estimate.outputTokens).toBe(1_000);
});

test("a cap is taken as it is for every choice, but never above what the model can write", () => {
  const of = (cap: number, choices: number): number =>
    estimator().estimate(subject, size, { cap, choices }).outputTokens;
  expect(of(200, 1)).toBe(200);
  expect(of(200, 3)).toBe(600);
  expect(of(50_000, 2)).toBe(10_000);
});

test("the ratio follows what the upstream counts, and stays an upper bound of most calls", () => {
  const learning = estimator();
  for (let index = 0; index < 2_000; index += 1) {
    const inputTokens = 1_800 + (index % 100);
    learning.learn(subject, { size, output: uncapped, usage: usageOf(inputTokens, 50) });
  }
  const { inputTokens } = learning.estimate(subject, size, uncapped);
  expect(inputTokens).toBeGreaterThanOrEqual(1_870);
  expect(inputTokens).toBeLessThan(2_100);
});

test("the learned ratio stays between the first one and the most of any tokenizer", () => {
  const after = (inputTokens: number): number => {
    const learning = estimator();
    for (let index = 0; index < 500; index += 1) {
      learning.learn(subject, { size, output: uncapped, usage: usageOf(inputTokens, 50) });
    }
    return learning.estimate(subject, size, uncapped).inputTokens;
  };
  expect(after(1)).toBe(1_000);
  expect(after(2 ** 40)).toBe(3_000);
});

test("what was learned is forgotten a day after the last update, and not before", () => {
  const learning = estimator();
  for (let index = 0; index < 500; index += 1) {
    learning.learn(subject, { size, output: uncapped, usage: usageOf(2_000, 50) });
  }
  const at = (hours: number): number =>
    learning.estimate({ ...subject, nowMs: hours * 3_600_000 }, size, uncapped).inputTokens;
  expect(at(23.9)).toBeGreaterThan(1_900);
  expect(at(24)).toBe(1_000);
});

test("an account that goes through keys forgets its oldest, and no other account's", () => {
  const learning = estimator();
  const teach = (accountId: string, keyId: string): void => {
    const usage = usageOf(3_000, 50);
    learning.learn({ ...subject, accountId, keyId }, { size, output: uncapped, usage });
  };
  const inputOf = (accountId: string, keyId: string): number =>
    learning.estimate({ ...subject, accountId, keyId }, size, uncapped).inputTokens;
  teach("acct_b", "key_b");
  const before = inputOf("acct_b", "key_b");
  for (let key = 0; key < 5_000; key += 1) teach("acct_a", `key_${key}`);
  expect(before).toBeGreaterThan(1_000);
  expect(inputOf("acct_a", "key_0")).toBe(1_000);
  expect(inputOf("acct_a", "key_4999")).toBe(before);
  expect(inputOf("acct_b", "key_b")).toBe(before);
});

interface Step {
  readonly key: string;
  readonly input: number;
  readonly output: number;
  readonly isCapped: boolean;
  readonly waitHours: number;
}

const step = fc.record({
  key: fc.constantFrom("key_1", "key_2"),
  input: fc.nat({ max: 10_000 }),
  output: fc.nat({ max: 10_000 }),
  isCapped: fc.boolean(),
  waitHours: fc.constantFrom(0, 0, 0, 1, 13, 25, 50),
});

test("no account changes another's estimates", () => {
  const own = fc.array(fc.tuple(fc.array(step, { maxLength: 5 }), step), { maxLength: 20 });
  const property = fc.property(own, (rounds) => {
    const alone = estimator();
    const shared = estimator();
    let hours = 0;
    for (const [others, mine] of rounds) {
      for (const other of others) {
        hours += other.waitHours;
        teachStep(shared, { accountId: "acct_b", step: other, hours });
      }
      hours += mine.waitHours;
      teachStep(alone, { accountId: "acct_a", step: mine, hours });
      teachStep(shared, { accountId: "acct_a", step: mine, hours });
      for (const keyId of ["key_1", "key_2"]) {
        const asked = { ...subject, keyId, nowMs: (hours + 7) * 3_600_000 };
        const expected = alone.estimate(asked, size, uncapped);
        expect(shared.estimate(asked, size, uncapped)).toEqual(expected);
      }
    }
  });
  fc.assert(property, { numRuns: 300 });
});

function teachStep(
  learning: TokenEstimator,
  { accountId, step: taught, hours }: { accountId: string; step: Step; hours: number },
): void {
  const { key: keyId, input, output, isCapped } = taught;
  const by = { ...subject, accountId, keyId, nowMs: hours * 3_600_000 };
  const expectation = { cap: isCapped ? 10_000 : undefined, choices: 1 };
  learning.learn(by, { size, output: expectation, usage: usageOf(input, output) });
}

test("ratios and lengths are learned for each key and model apart", () => {
  const learning = estimator();
  for (let index = 0; index < 500; index += 1) {
    learning.learn(subject, { size, output: uncapped, usage: usageOf(2_500, 400) });
  }
  const learned = learning.estimate(subject, size, uncapped);
  expect(learned.outputTokens).toBeLessThan(500);
  expect(learned.inputTokens).toBeGreaterThan(2_400);
  const otherModel = modelOf({ ...model, alias: "beta-3-70b" });
  for (const other of [{ keyId: "key_b" }, { model: otherModel }]) {
    const estimate = learning.estimate({ ...subject, ...other }, size, uncapped);
    expect(estimate).toEqual({ inputTokens: 1_000, outputTokens: 1_000 });
  }
});

test("a key cannot train its reservations down with tiny caps or tiny answers", () => {
  const learning = estimator();
  const tiny = { cap: 1, choices: 1 };
  for (let index = 0; index < 1_000; index += 1) {
    learning.learn(subject, { size, output: tiny, usage: usageOf(900, 1) });
  }
  expect(learning.estimate(subject, size, uncapped).outputTokens).toBe(1_000);
  for (let index = 0; index < 1_000; index += 1) {
    learning.learn(subject, { size, output: uncapped, usage: usageOf(1, 1) });
  }
  const estimate = learning.estimate(subject, size, uncapped);
  expect(estimate.outputTokens).toBe(256);
  expect(estimate.inputTokens).toBe(1_000);
});

test("lengths are learned for one choice and expected for each", () => {
  const learning = estimator();
  const four = { cap: undefined, choices: 4 };
  for (let index = 0; index < 500; index += 1) {
    learning.learn(subject, { size, output: four, usage: usageOf(900, 2_000) });
  }
  const single = learning.estimate(subject, size, uncapped).outputTokens;
  expect(single).toBeGreaterThan(400);
  expect(single).toBeLessThan(650);
  expect(learning.estimate(subject, size, four).outputTokens).toBe(4 * single);
});

function measureFile(prefix: string, filename: string | undefined) {
  const file = { file_data: `${prefix}${"A".repeat(80_000)}`, filename };
  const messages = [{ role: "user" as const, content: [{ type: "file" as const, file }] }];
  const body = { model: "m", messages };
  return measureChatInput(readChatRequest(body), JSON.stringify(body).length);
}

test.each([
  ["data:text/plain;base64,", undefined],
  ["DATA:text/plain;base64,", "a.txt"],
  ["data:TEXT/Markdown,", undefined],
  ["data:text/plain;base64,", "a.pdf"],
  ["data: application/json ;charset=utf-8;base64,", "a.docx"],
  ["data:application/octet-stream;base64,", "a.md"],
  ["data:application/x-new;base64,", undefined],
  ["data:image/png;base64,", "a.txt"],
  ["data:;base64,", "pdf"],
  ["data:application/pdf x;base64,", "a.txt"],
  ["data:application/vnd.ms-powerpoint;base64,", "a.txt"],
  ["", "a.txt"],
  ["", "a.pdf.txt"],
  ["", undefined],
])("a prompt wrapped in a file as '%s' named %p is counted as text", (prefix, filename) => {
  const measured = measureFile(prefix, filename);
  expect(measured.textBytes).toBeGreaterThan(80_000);
  expect(measured.attachmentTokens).toBe(0);
});

test.each([
  ["data:application/pdf;base64,", undefined],
  ["DATA:Application/PDF;name=x;base64,", "a.txt"],
  ["data:application/vnd.openxmlformats-officedocument.wordprocessingml.document;base64,", "x"],
  ["data:application/vnd.ms-excel;base64,", "a"],
  ["data:application/msword;base64,", undefined],
  ["data:application/octet-stream;base64,", "a.PDF"],
  ["data:;base64,", "a.xlsx"],
  ["", "report.final.Docx"],
])("a document as '%s' named %p is counted by its size, not as text", (prefix, filename) => {
  const measured = measureFile(prefix, filename);
  expect(measured.textBytes).toBeLessThan(500);
  expect(measured.attachmentTokens).toBeGreaterThan(80_000 / 25);
  expect(measured.attachmentTokens).toBeLessThan(80_000 / 10);
});

test("attachments count by their kind, their bytes do not count as text", () => {
  const url = `data:image/png;base64,${"A".repeat(90_000)}`;
  const body = {
    model: "m",
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "what is this" },
          { type: "image_url", image_url: { url } },
          { type: "input_audio", input_audio: { data: "B".repeat(5_000) } },
          { type: "file", file: { filename: "a.pdf", file_data: "C".repeat(1_000) } },
        ],
      },
    ],
  };
  const bodyBytes = JSON.stringify(body).length;
  const measured = measureChatInput(readChatRequest(body), bodyBytes);
  expect(measured.attachmentTokens).toBe(3 * 1_600 + 200 + 40);
  expect(measured.textBytes).toBeLessThan(400);
  expect(estimator().estimate(subject, measured, uncapped).inputTokens).toBeLessThan(6_000);
});

test("estimates are whole numbers, as the limiter demands", () => {
  const learning = estimator();
  const odd = { textBytes: 7, attachmentTokens: 0 };
  learning.learn(subject, { size: odd, output: uncapped, usage: usageOf(3, 17) });
  const estimate = learning.estimate(subject, { textBytes: 11, attachmentTokens: 1_600 }, uncapped);
  for (const value of Object.values(estimate)) expect(Number.isInteger(value)).toBe(true);
});

test("answers that end at the plan's cap make the next one longer, and others under it are exact", () => {
  const estimator = new TokenEstimator({ defaultOutputTokens: 1_024, nowMs: 0 });
  const model = modelOf({ maxOutputTokens: 64_000 });
  const subject = { accountId: "acct_a", keyId: "key_a", model, nowMs: 0 };
  const size = { textBytes: 30, attachmentTokens: 0 };
  const expected = (): number =>
    estimator.estimate(subject, size, { cap: undefined, choices: 1 }).outputTokens;
  const answer = (outputTokens: number, choices = 1): void => {
    const usage = { inputTokens: 10, outputTokens, cachedInputTokens: 0, reasoningTokens: 0 };
    const outputCap = expected();
    estimator.learn(subject, { size, output: { cap: undefined, choices }, outputCap, usage });
  };
  const start = expected();
  for (let count = 0; count < 30; count += 1) answer(expected() - 1);
  const grown = expected();
  expect(grown).toBeGreaterThan(start);
  // Which of several choices was cut is unknown.
  for (let count = 0; count < 50; count += 1) answer(300, 2);
  expect(expected()).toBe(grown);
});

test("results of tools count like messages, and opaque thoughts by their size, not as text", () => {
  const url = `data:image/png;base64,${"A".repeat(90_000)}`;
  const data = "B".repeat(50_000);
  const body = {
    model: "m",
    messages: [
      { role: "assistant", reasoning_details: [{ type: "reasoning.encrypted", data }] },
      { role: "tool", tool_call_id: "c", content: [{ type: "image_url", image_url: { url } }] },
      { role: "tool", tool_call_id: "d", content: "t".repeat(9_000) },
    ],
  };
  const measured = measureChatInput(readChatRequest(body), JSON.stringify(body).length);
  expect(measured.attachmentTokens).toBe(1_600 + 10_000);
  expect(measured.textBytes).toBeGreaterThan(9_000);
  expect(measured.textBytes).toBeLessThan(9_400);
});

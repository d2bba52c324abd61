import { expect, test } from "bun:test";
import { modelOf } from "../../test/support/pipeline-fixtures.ts";
import type { ChatRequest } from "../domain/chat.ts";
import { measureChatInput, TokenEstimator } from "./estimate.ts";

const model = modelOf({ maxOutputTokens: 5_000, contextWindow: 100_000 });
const subject = { keyId: "key_a", model, nowMs: 0 };
const size = { textBytes: 3_000, attachments: 0 };
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
    const inputTokens = 600 + (index % 100);
    learning.learn(subject, size, usageOf(inputTokens, 50));
  }
  const estimate = learning.estimate(subject, size, uncapped);
  expect(estimate.inputTokens).toBeGreaterThanOrEqual(670);
  expect(estimate.inputTokens).toBeLessThan(800);
  expect(estimate.likelyInputTokens).toBeGreaterThan(600);
  expect(estimate.likelyInputTokens).toBeLessThan(700);
});

test("output lengths are learned for each key and model apart", () => {
  const learning = estimator();
  for (let index = 0; index < 500; index += 1) learning.learn(subject, size, usageOf(900, 40));
  expect(learning.estimate(subject, size, uncapped).outputTokens).toBeLessThan(80);
  const stranger = { ...subject, keyId: "key_b" };
  expect(learning.estimate(stranger, size, uncapped).outputTokens).toBe(1_000);
});

test("attachments count by number, their bytes do not count as text", () => {
  const url = `data:image/png;base64,${"A".repeat(90_000)}`;
  const request: ChatRequest = {
    model: "m",
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "what is this" },
          { type: "image_url", image_url: { url } },
          { type: "input_audio", input_audio: { data: "B".repeat(5_000) } },
          { type: "file", file: { file_data: "C".repeat(1_000) } },
        ],
      },
    ],
  };
  const bodyBytes = JSON.stringify(request).length;
  const measured = measureChatInput(request, bodyBytes);
  expect(measured.attachments).toBe(3);
  expect(measured.textBytes).toBeLessThan(400);
  expect(estimator().estimate(subject, measured, uncapped).inputTokens).toBeLessThan(6_000);
});

test("estimates are whole numbers, as the limiter demands", () => {
  const learning = estimator();
  learning.learn(subject, { textBytes: 7, attachments: 0 }, usageOf(3, 17));
  const estimate = learning.estimate(subject, { textBytes: 11, attachments: 1 }, uncapped);
  for (const value of Object.values(estimate)) expect(Number.isInteger(value)).toBe(true);
});

import { afterEach, beforeEach, expect, test } from "bun:test";
import OpenAI from "openai";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const models = `
  beta-3-70b:
    kind: chat
    context_window: 128000
    max_output_tokens: 4096
    targets: [{ upstream: simulator, model: us.meta.llama3-3-70b-instruct-v1:0 }]`;

const claude = `
  alpha:
    kind: chat
    context_window: 128000
    max_output_tokens: 4096
    targets: [{ upstream: simulator, model: us.anthropic.claude-sonnet-4-6 }]`;

const turn = [
  "Thought: I should look it up.",
  "Action: search[rain in Paris]",
  "Observation: it rained.",
  "Thought: I made that up.",
].join("\n");
const untilObservation = turn.slice(0, turn.indexOf("Observation:"));

let gateway: TestGateway;
let client: OpenAI;
beforeEach(async () => {
  gateway = await startGateway({ kind: "bedrock", sections: { models: `${models}${claude}` } });
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 });
});
afterEach(() => gateway[Symbol.asyncDispose]());

const requestOf = (text: string, stop: string | string[]) => ({
  model: "beta-3-70b",
  messages: [{ role: "user" as const, content: `echo: ${text}` }],
  stop,
});

test("a ReAct turn of a model without stop sequences ends before its observation", async () => {
  const whole = await client.chat.completions.create(requestOf(turn, ["Observation:"]));
  expect(whole.choices[0]?.message.content).toBe(untilObservation);
  expect(whole.choices[0]?.finish_reason).toBe("stop");

  const stream = client.chat.completions.stream({ ...requestOf(turn, "Observation:"), n: 1 });
  const final = await stream.finalChatCompletion();
  expect(final.choices[0]?.message.content).toBe(untilObservation);
  expect(final.choices[0]?.finish_reason).toBe("stop");
});

test("an answer that is cut ends the upstream's call and is counted as delivered", async () => {
  const text = `${untilObservation}Observation:${" and so on".repeat(20_000)}`;
  const stream = await client.chat.completions.create({
    ...requestOf(text, "Observation:"),
    stream: true,
    stream_options: { include_usage: true },
  });
  let told: number | undefined;
  for await (const { usage } of stream) told = usage?.completion_tokens ?? told;

  const [row] = await gateway.usage();
  expect(row).toMatchObject({ outcome: "completed", usageSource: "counted", status: 200 });
  expect(row?.outputTokens).toBe(told ?? 0);
  expect(told).toBeLessThan(100);
  while (gateway.simulator.openCalls > 0) await Bun.sleep(1);
  expect(gateway.simulator.truth.entries.at(-1)?.clientLeft).toBe(true);
});

test("nothing more of an answer that is cut is read", async () => {
  await using slow = await startGateway({
    kind: "bedrock",
    simulator: { tokensPerSecond: 20 },
    sections: { models },
  });
  const text = `Observation:${" and so on".repeat(1000)}`;
  const request = { ...requestOf(text, "Observation:"), stream: true };
  const answer = await slow.post("/v1/chat/completions", request);
  expect(await answer.text()).toContain('"finish_reason":"stop"');
  while (slow.simulator.openCalls > 0) await Bun.sleep(1);
  // A stream that comes to its end by itself would be read a little further.
  expect(slow.simulator.truth.entries.at(-1)?.completionTokens).toBeLessThan(12);
});

test("each of several choices is cut", async () => {
  const request = { ...requestOf(turn, "Observation:"), n: 3 };
  const whole = await client.chat.completions.create(request);
  expect(whole.choices.map(({ message }) => message.content)).toEqual(
    Array.from({ length: 3 }, () => untilObservation),
  );
  const contents = ["", "", ""];
  const reasons: (string | null)[] = [];
  const stream = await client.chat.completions.create({ ...request, stream: true });
  for await (const { choices } of stream) {
    for (const { index, delta, finish_reason: reason } of choices) {
      contents[index] += delta.content ?? "";
      if (reason !== null) reasons.push(reason);
    }
  }
  expect(contents).toEqual(Array.from({ length: 3 }, () => untilObservation));
  expect(reasons).toEqual(["stop", "stop", "stop"]);
});

test.each(["alpha", "beta-3-70b"])("an answer of %s ends at the first line too", async (model) => {
  for (const stop of ["\n", ["never", "\n\n", "\n"]]) {
    const whole = await client.chat.completions.create({ ...requestOf(turn, stop), model });
    const [choice] = whole.choices;
    expect(choice?.message.content).toBe("Thought: I should look it up.");
    expect(choice?.finish_reason).toBe("stop");
    const stream = client.chat.completions.stream({ ...requestOf(turn, stop), model });
    expect(await stream.finalContent()).toBe("Thought: I should look it up.");
  }
});

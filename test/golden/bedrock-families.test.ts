import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { exceptionFrame } from "../../simulator/bedrock/event-frames.ts";
import {
  chatFamilies,
  type ChatFamily,
  knownFamilies,
} from "../../src/upstreams/bedrock/models/facts.ts";
import {
  Answer,
  argumentsOf,
  chunkOf,
  headerOf,
  usageChunk,
  type Step,
  type Thoughts,
} from "./bedrock-answers.ts";
import { converseFamilies as aliases, identifiers } from "../support/bedrock-identifiers.ts";
import { bodyOf, inStream, type InStream } from "./bedrock-exceptions.ts";
import { withoutIdAndTime } from "./normalise.ts";
import {
  jsonAnswer,
  ScriptedUpstream,
  type Piece,
  type ScriptedAnswer,
} from "./scripted-upstream.ts";

/** What a family sends, as far as its frames differ from those of others. */
interface Family {
  /** Whether calls of tools are streamed, come in whole answers only, or not at all. */
  readonly tools: "streamed" | "whole" | "none";
  readonly thoughts: Thoughts;
  /** Whether it counts what it reads from and writes to the provider's cache. */
  readonly caches: boolean;
  /** Who ends an answer at a stop sequence. */
  readonly stop: "model" | "gateway";
}

const claude: Family = {
  tools: "streamed",
  thoughts: "none",
  caches: false,
  stop: "model",
};
const caching = { ...claude, caches: true };
const thinking = { ...caching, thoughts: "signed" } as const;
const llama = { tools: "whole", thoughts: "none", caches: false, stop: "gateway" } as const;
const wordsOnly = { tools: "none", thoughts: "none", caches: false, stop: "model" } as const;

const families: Readonly<Record<ChatFamily, Family>> = {
  "claude-3": claude,
  "claude-3-5": claude,
  "claude-3-5-haiku": caching,
  "claude-4": thinking,
  "claude-opus-4": thinking,
  "claude-4-5": thinking,
  "claude-4-6": thinking,
  "claude-4-7": thinking,
  "claude-5": thinking,
  "claude-haiku-5-5": thinking,
  "claude-sonnet-5-5": thinking,
  "claude-opus-5-5": thinking,
  "llama-3": { ...llama, tools: "none" },
  "llama-3-1": llama,
  "llama-3-2-vision": llama,
  "llama-4": llama,
  "mistral-7b": wordsOnly,
  "mixtral-8x7b": wordsOnly,
  "mistral-large": { ...wordsOnly, tools: "whole" },
  nova: caching,
  "nova-micro": caching,
  "nova-2": { ...caching, thoughts: "unsigned" },
  "titan-text": wordsOnly,
  "cohere-command-r": { ...wordsOnly, tools: "streamed" },
  "deepseek-r1": { ...wordsOnly, thoughts: "unsigned" },
  "gpt-oss": { ...claude, thoughts: "unsigned", stop: "gateway" },
  "gpt-5-6": claude,
  "other-chat": claude,
};

/** Aliases are named as their family is. */
const having = (has: (family: Family) => boolean): readonly ChatFamily[] =>
  aliases.filter((alias) => has(families[alias]));

test("every family is here", () => {
  expect(aliases.toSorted()).toEqual(chatFamilies.toSorted());
});

let upstream: ScriptedUpstream;
beforeAll(async () => {
  const models = aliases.map((alias) => {
    const family = alias === "other-chat" ? ", bedrock: { family: other-chat }" : "";
    const target = `{ upstream: scripted, model: "${identifiers[alias]}"${family} }`;
    return `
  ${alias}: { kind: chat, context_window: 8192, targets: [${target}] }`;
  });
  upstream = await ScriptedUpstream.start("bedrock", { models: models.join("") });
});
afterAll(async () => {
  await upstream[Symbol.asyncDispose]();
});

const stream = (pieces: readonly Piece[]): ScriptedAnswer => ({
  headers: { "content-type": "application/vnd.amazon.eventstream" },
  pieces,
});

/** The caller's stream for an answer of the upstream's, with the counts at its end. */
async function streamed(model: string, answer: ScriptedAnswer, request: object = {}) {
  const asked = { model, stream: true, stream_options: { include_usage: true }, ...request };
  const response = await upstream.chat(answer, asked);
  return { status: response.status, body: normalised(await response.text()) };
}

/** The seal of a thought is another for each model; that it opens again is tested elsewhere. */
const normalised = (body: string): string =>
  withoutIdAndTime(body).replaceAll(/"(signature|data)":"s1\.[\w-]{22}\./g, '"$1":"SEAL.');

/** Sends the frames, and expects what stands beside them. */
async function expectSteps(
  alias: string,
  steps: readonly Step[],
  request: object = {},
): Promise<void> {
  const frames = steps.map(({ frame }) => frame);
  const { status, body } = await streamed(alias, stream(frames), request);
  expect(body).toBe(steps.map(({ seen }) => seen).join(""));
  expect(status).toBe(200);
}

const plainCounts = { inputTokens: 12, outputTokens: 7 };
const cacheCounts = { ...plainCounts, cacheReadInputTokens: 200, cacheWriteInputTokens: 30 };
const countsOf = ({ caches }: Family) => (caches ? cacheCounts : plainCounts);

const cityTool = {
  type: "function",
  function: {
    name: "get_weather",
    parameters: { type: "object", properties: { city: { type: "string" } } },
  },
};
const clockTool = {
  type: "function",
  function: { name: "get_time", parameters: { type: "object", properties: {} } },
};
const tools = [cityTool, clockTool];

function addThoughts(answer: Answer, { thoughts }: Family): Answer {
  switch (thoughts) {
    case "signed":
      return answer.signedThought(["The user", " greets."], "c2lnbmVk").hiddenThought("aGlkZGVu");
    case "unsigned":
      return answer.unsignedThought("The user", " greets.");
    case "none":
      return answer;
  }
}

/** All that the family can say in one answer. */
function fullAnswer(alias: ChatFamily): Answer {
  const family = families[alias];
  const answer = addThoughts(new Answer(alias), family).text("Grüße", ", 世界 👋🏽");
  if (family.tools !== "streamed") return answer.end("end_turn", '"stop"', countsOf(family));
  return answer
    .call(0, { id: "tooluse_A1-b_2", name: "get_weather", input: ['{"ci', 'ty": "Rome"}'] })
    .call(1, { id: "tooluse_C3", name: "get_time", input: [] })
    .end("tool_use", '"tool_calls"', countsOf(family));
}

/** What brings such an answer about. */
const fullRequest = ({ thoughts, tools: sends }: Family): object => ({
  ...(thoughts !== "none" && { reasoning_effort: "low" }),
  ...(sends === "streamed" && { tools }),
});

test("each identifier is one of its family", () => {
  for (const alias of aliases) {
    expect(knownFamilies.familyOf(identifiers[alias]) ?? "other-chat").toBe(alias);
  }
});

describe("a stream of text is its pieces, its finish and its counts:", () => {
  test.each(aliases)("%s", async (alias) => {
    const counts = countsOf(families[alias]);
    const answer = new Answer(alias).text("Grüße", ", 世界 👋🏽").end("end_turn", '"stop"', counts);
    await expectSteps(alias, answer.steps);
  });
});

describe("an answer that ends at the cap is told by its length:", () => {
  test.each(aliases)("%s", async (alias) => {
    const counts = countsOf(families[alias]);
    const answer = new Answer(alias).text("one").end("max_tokens", '"length"', counts);
    await expectSteps(alias, answer.steps);
  });
});

describe("thoughts stand before the text:", () => {
  test.each(having(({ thoughts }) => thoughts !== "none"))("%s", async (alias) => {
    const family = families[alias];
    const answer = addThoughts(new Answer(alias), family).text("Hello");
    answer.end("end_turn", '"stop"', countsOf(family));
    await expectSteps(alias, answer.steps, { reasoning_effort: "low" });
  });
});

describe("thoughts whose words are left out can be sent back all the same:", () => {
  test.each(having(({ thoughts }) => thoughts === "signed"))("%s", async (alias) => {
    const answer = new Answer(alias).signedThought([], "c2lnbmVk").text("Hello");
    await expectSteps(alias, answer.end("end_turn", '"stop"', plainCounts).steps);
  });
});

describe("calls are streamed behind thoughts and text, one without arguments as an empty object:", () => {
  test.each(having((family) => family.tools === "streamed"))("%s", async (alias) => {
    await expectSteps(alias, fullAnswer(alias).steps, fullRequest(families[alias]));
  });
});

describe("an answer may begin with a call:", () => {
  test.each(having((family) => family.tools === "streamed"))("%s", async (alias) => {
    const answer = new Answer(alias)
      .call(0, { id: "tooluse_C3", name: "get_time", input: [] })
      .end("tool_use", '"tool_calls"', plainCounts);
    await expectSteps(alias, answer.steps, { tools });
  });
});

describe("calls of a family that streams none come in one answer, and are streamed to the caller:", () => {
  test.each(having((family) => family.tools === "whole"))("%s", async (alias) => {
    const content = [
      { text: "Let me see." },
      { toolUse: { toolUseId: "tooluse_A1", name: "get_weather", input: { city: "Rome" } } },
      { toolUse: { toolUseId: "tooluse_C3", name: "get_time", input: {} } },
    ];
    const answer = jsonAnswer({
      output: { message: { role: "assistant", content } },
      stopReason: "tool_use",
      usage: { ...plainCounts, totalTokens: 19 },
      metrics: { latencyMs: 12 },
    });
    const { status, body } = await streamed(alias, answer, { tools });
    const chunk = (delta: string): string => chunkOf(alias, delta);
    const call = (inside: string): string => chunk(`"tool_calls":[${inside}]`);
    expect(body).toBe(
      [
        chunk('"role":"assistant","content":"","refusal":null'),
        chunk('"content":"Let me see."'),
        call(headerOf(0, "tooluse_A1", "get_weather")),
        call(argumentsOf(0, '{"city":"Rome"}')),
        call(headerOf(1, "tooluse_C3", "get_time")),
        call(argumentsOf(1, "{}")),
        chunkOf(alias, "", '"tool_calls"'),
        usageChunk(alias, { prompt: 12, completion: 7, read: 0, written: 0 }),
        "data: [DONE]\n\n",
      ].join(""),
    );
    expect(status).toBe(200);
  });
});

describe("the input of a tool is the answer where a family knows no schemas:", () => {
  const schema = {
    type: "object",
    properties: { celsius: { type: "integer" } },
    required: ["celsius"],
    additionalProperties: false,
  };
  const json_schema = { name: "forecast", schema, strict: true };
  const request = { tools, response_format: { type: "json_schema", json_schema } };
  const held: readonly ChatFamily[] = [
    "claude-3",
    "claude-3-5",
    "claude-3-5-haiku",
    "claude-4",
    "claude-opus-4",
    "claude-4-7",
    "claude-5",
    "nova",
    "nova-micro",
    "nova-2",
    "other-chat",
  ];
  const forecast = { id: "tooluse_F1", name: "forecast", input: ['{"cel', 'sius": 31}'] };

  test.each(held)("%s", async (alias) => {
    const counts = countsOf(families[alias]);
    const answer = new Answer(alias).heldText("Here ", "it is.").answerCall(forecast);
    const { steps } = answer.end("tool_use", '"stop"', counts);
    await expectSteps(alias, steps, request);
    if (!wires.includes(alias)) return;
    for (const exception of inStream) await expectEndings(alias, steps, exception, request);
  });

  test.each(held)("%s calls others before it", async (alias) => {
    const answer = new Answer(alias)
      .heldText("Let me", " see.")
      .call(0, { id: "tooluse_A1", name: "get_weather", input: ['{"city": "Rome"}'] })
      .end("tool_use", '"tool_calls"', countsOf(families[alias]));
    await expectSteps(alias, answer.steps, request);
  });
});

describe("a family without tools refuses them before the upstream is asked:", () => {
  test.each(having((family) => family.tools === "none"))("%s", async (alias) => {
    const asked = upstream.requests.length;
    const { status, body } = await streamed(alias, stream([]), { tools });
    expect(body).toBe(
      '{"error":{"message":"This model cannot call tools. Remove tools.",' +
        '"type":"invalid_request_error","param":"tools","code":"unsupported_parameter"}}',
    );
    expect(status).toBe(400);
    expect(upstream.requests.length).toBe(asked);
  });
});

const untoldFilter = '"content_filter","content_filter_results":{"guardrail":{"filtered":true}}';

describe("a guardrail that steps in is told in a field, and what it found is not:", () => {
  const match = { match: "swordfish", action: "BLOCKED", detected: true };
  const policy = { wordPolicy: { customWords: [match], managedWordLists: [] } };
  const trace = {
    guardrail: { actionReason: "Guardrail blocked.", inputAssessment: { gr1: policy } },
  };
  const blocked = `"content_filter","content_filter_results":{"guardrail":{"filtered":true,"action":"blocked"}}`;

  test.each(aliases)("%s", async (alias) => {
    const counts = countsOf(families[alias]);
    const answer = (): Answer => new Answer(alias).text("This is not", " allowed.");
    await expectSteps(
      alias,
      answer().end("guardrail_intervened", blocked, counts, { trace }).steps,
    );
    await expectSteps(alias, answer().end("guardrail_intervened", untoldFilter, counts).steps);
  });
});

describe("the gateway ends an answer at a stop sequence where the model does not:", () => {
  test.each(having(({ stop }) => stop === "gateway"))("%s", async (alias) => {
    const answer = new Answer(alias).cutText(
      ["Thought: rain?\nObs", "ervation", ": none. Obser"],
      [["Thought: rain?\n"], [], []],
    );
    const frames = answer.steps.map(({ frame }) => frame);
    const request = { stop: ["Observation:"], stream_options: undefined };
    const { status, body } = await streamed(alias, stream(frames), request);
    const lines = [...answer.steps.map(({ seen }) => seen), chunkOf(alias, "", '"stop"')];
    expect(body).toBe(lines.join("").replaceAll(',"usage":null', "") + "data: [DONE]\n\n");
    expect(status).toBe(200);
    expect(upstream.requests.at(-1)).not.toHaveProperty("inferenceConfig.stopSequences");
  });
});

describe("a stop sequence that the model ends at is a stop:", () => {
  test.each(having(({ stop }) => stop === "model"))("%s", async (alias) => {
    const answer = new Answer(alias).text("Thought: rain?\n");
    answer.end("stop_sequence", '"stop"', countsOf(families[alias]));
    await expectSteps(alias, answer.steps, { stop: ["Observation:"] });
    expect(upstream.requests.at(-1)).toHaveProperty("inferenceConfig.stopSequences", [
      "Observation:",
    ]);
  });
});

/** The first family of each way in which frames differ: the others send the same ones. */
const wires = aliases.filter((alias, index) => {
  const wireOf = (name: ChatFamily): string => `${families[name].tools} ${families[name].thoughts}`;
  return aliases.findIndex((other) => wireOf(other) === wireOf(alias)) === index;
});

describe.each(wires)("an exception at every position of a stream of %s:", (alias) => {
  test("the positions lie before, in and behind all that the family can say", () => {
    const { thoughts, tools: sends } = families[alias];
    const events = fullAnswer(alias).steps.map(({ at }) => at);
    const has = (word: string): boolean => events.some((event) => event.includes(word));
    expect(has("reasoningContent")).toBe(thoughts !== "none");
    expect(has("toolUse")).toBe(sends === "streamed");
    expect(events.at(-1)).toContain("metadata");
  });

  test.each(inStream)("$name: $message", async (exception) => {
    const { steps } = fullAnswer(alias);
    await expectEndings(alias, steps, exception, fullRequest(families[alias]));
  });
});

/** Sends as many of the frames as there are, fewer, or none, and then the exception. */
async function expectEndings(
  alias: string,
  steps: readonly Step[],
  { name, message, fields, seen }: InStream,
  request: object = {},
): Promise<void> {
  const exception = exceptionFrame(name, JSON.stringify({ message, ...fields }));
  const got: object[] = [];
  const wanted: object[] = [];
  for (let count = 0; count <= steps.length; count += 1) {
    const before = steps.slice(0, count);
    const at = before.at(-1)?.at ?? "the beginning";
    const frames = before.map(({ frame }) => frame);
    got.push({ at, ...(await streamed(alias, stream([...frames, exception]), request)) });
    wanted.push({ at, ...endingOf(before.map((step) => step.seen).join(""), seen) });
  }
  expect(got).toEqual(wanted);
}

/** What a caller sees who has been told `told` when an exception comes. */
function endingOf(told: string, seen: InStream["seen"]) {
  // Nothing has been said, so the answer can still be an error.
  if (told === "") return { status: seen.status, body: bodyOf(seen) };
  // The answer is whole: nobody listens any more.
  if (told.endsWith("data: [DONE]\n\n")) return { status: 200, body: told };
  return { status: 200, body: `${told}data: ${bodyOf(seen)}\n\n` };
}

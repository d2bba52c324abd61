import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import type { AnswerEvent } from "./answer.ts";
import { countTokens, type Prompt, tokenize, type Tool, type Turn } from "./prompt.ts";
import { writeAnswer } from "./write-answer.ts";

function turn(role: Turn["role"], text: string): Turn {
  return { role, text, name: undefined, attachments: [], toolCalls: [] };
}

function ask(text: string, changes: Partial<Prompt> = {}): Prompt {
  return {
    model: "m",
    turns: [turn("user", text)],
    tools: [],
    toolUse: { mode: "auto", only: undefined, isParallel: true },
    output: { kind: "text" },
    maxTokens: undefined,
    stopSequences: [],
    seed: "null",
    reasoningEffort: undefined,
    ...changes,
  };
}

function events(prompt: Prompt, choice = 0): AnswerEvent[] {
  return [...writeAnswer(prompt, choice)];
}

function textOf(prompt: Prompt, choice = 0): string {
  return events(prompt, choice)
    .map((event) => (event.kind === "text" ? event.piece : ""))
    .join("");
}

function finishOf(prompt: Prompt) {
  const last = events(prompt).at(-1);
  if (last?.kind !== "finish") throw new Error("an answer must finish");
  return last;
}

function functionTool(name: string, description: string, schema: object = {}): Tool {
  return { kind: "function", name, description, schema: { ...schema } };
}

const weather = functionTool("get_weather", "Current weather of a city", {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
});
const stocks = functionTool("stock_price", "Latest price of a share");

describe("the text of an answer", () => {
  test("is the same for the same prompt and differs by seed and by choice", () => {
    const prompt = ask("How do I plan a garden with roses?");
    expect(textOf(prompt)).toBe(textOf(prompt));
    expect(textOf({ ...prompt, seed: "7" })).not.toBe(textOf(prompt));
    expect(textOf(prompt, 1)).not.toBe(textOf(prompt));
  });

  test("mentions the question and the model", () => {
    const turns = [
      turn("user", "Tell me of bridges"),
      turn("assistant", "So."),
      turn("user", "And tunnels?"),
    ];
    const text = textOf(ask("", { turns, model: "alpha-sonnet-4" }));
    expect(text).toContain("tunnels");
    expect(text).toContain("alpha-sonnet-4");
  });

  test("describes attachments by type and size", () => {
    const attachments = [
      { kind: "image", mediaType: "image/png", sizeBytes: 68, name: undefined },
    ] as const;
    const text = textOf(ask("", { turns: [{ ...turn("user", "What is this?"), attachments }] }));
    expect(text).toContain("image/png, 68 bytes");
  });

  test("quotes the results of tools", () => {
    const turns = [
      turn("user", "weather in Oslo?"),
      { ...turn("tool", "4 degrees"), name: "get_weather" },
    ];
    const text = textOf(ask("", { turns, tools: [weather] }));
    expect(text).toContain("get_weather says 4 degrees");
  });

  test("follows the scripts echo, count and refuse", () => {
    expect(textOf(ask("echo:  two spaces\nand a line"))).toBe(" two spaces\nand a line");
    expect(textOf(ask("count: 5"))).toBe("1 2 3 4 5");
    expect(finishOf(ask("count: 500")).completionTokens).toBe(500);
    expect(textOf(ask("bulk: 3"))).toHaveLength(3 * 16 * 1024);
    expect(finishOf(ask("bulk: 12800")).completionTokens).toBe(12_800);
    const kinds = new Set(events(ask("refuse: this")).map((event) => event.kind));
    expect(kinds).toEqual(new Set<AnswerEvent["kind"]>(["refusal", "finish"]));
  });

  test("is a JSON object if JSON is asked for", () => {
    const value: unknown = JSON.parse(
      textOf(ask("list rivers as json", { output: { kind: "json" } })),
    );
    expect(value).toMatchObject({ topics: ["list", "rivers", "json"] });
  });
});

describe("a limit of an answer", () => {
  test("cuts at the number of tokens, and is the reason only if something was cut", () => {
    expect(textOf(ask("count: 10", { maxTokens: 3 }))).toBe("1 2 3");
    expect(finishOf(ask("count: 10", { maxTokens: 3 }))).toMatchObject({
      reason: "length",
      completionTokens: 3,
    });
    expect(finishOf(ask("count: 10", { maxTokens: 10 })).reason).toBe("stop");
  });

  test("counts thoughts too", () => {
    const prompt = ask("why?", { reasoningEffort: "low", maxTokens: 20 });
    expect(finishOf(prompt)).toMatchObject({ completionTokens: 20, reasoningTokens: 20 });
    const free = finishOf(ask("echo: yes", { reasoningEffort: "low" }));
    expect(free).toMatchObject({ completionTokens: 33, reasoningTokens: 32, reason: "stop" });
  });

  test("cuts before the first complete stop sequence, even one of several tokens", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", " ", ".", "é"), maxLength: 40 });
    const stop = fc.string({
      unit: fc.constantFrom("a", "b", " ", "."),
      minLength: 1,
      maxLength: 6,
    });
    fc.assert(
      fc.property(text, fc.array(stop, { minLength: 1, maxLength: 3 }), (said, stopSequences) => {
        const cuts = Array.from({ length: said.length }, (_, end) => said.slice(0, end + 1))
          .filter((written) => stopSequences.some((sequence) => written.endsWith(sequence)))
          .map((written) => {
            const ends = stopSequences.filter((sequence) => written.endsWith(sequence));
            return written.length - Math.max(...ends.map((sequence) => sequence.length));
          });
        const [firstCut = said.length] = cuts;
        const expected = said.slice(0, firstCut);
        expect(textOf(ask(`echo: ${said}`, { stopSequences }))).toBe(expected);
      }),
    );
  });

  test("names the stop sequence", () => {
    const finish = (said: string, stopSequences: string[]) =>
      finishOf(ask(`echo: ${said}`, { stopSequences }));
    expect(finish("one two three", ["three", "two"])).toMatchObject({ stopSequence: "two" });
    expect(finish("b. a", ["b. a", "."])).toMatchObject({ stopSequence: "." });
    expect(finish("one", ["two"])).toMatchObject({ stopSequence: undefined });
  });

  test("reports the sum of the events' tokens", () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 200 }), (text, maxTokens) => {
        const all = events(ask(text, { maxTokens, reasoningEffort: "minimal" }));
        const spent = all.reduce((sum, event) => sum + ("tokens" in event ? event.tokens : 0), 0);
        expect(all.at(-1)).toMatchObject({ completionTokens: spent });
        expect(spent).toBeLessThanOrEqual(maxTokens);
      }),
    );
  });
});

describe("a tool call", () => {
  const tools = [weather, stocks];
  const called = (prompt: Prompt): string[] =>
    events(prompt).flatMap((event) => (event.kind === "call" ? [event.name] : []));

  test("is made only if the user asks for what the tool does", () => {
    expect(called(ask("What is the weather in Paris?", { tools }))).toEqual(["get_weather"]);
    expect(called(ask("Call stock_price please", { tools }))).toEqual(["stock_price"]);
    expect(called(ask("Tell me a story", { tools }))).toEqual([]);
    expect(finishOf(ask("weather?", { tools })).reason).toBe("tool-calls");
  });

  test("is one of several if several tools match, unless only one is allowed", () => {
    const text = "Weather in Rome and the latest stock price?";
    expect(called(ask(text, { tools }))).toEqual(["get_weather", "stock_price"]);
    const toolUse = { mode: "auto", only: undefined, isParallel: false } as const;
    expect(called(ask(text, { tools, toolUse }))).toEqual(["get_weather"]);
  });

  test("follows the caller's tool choice", () => {
    const use = (mode: "none" | "required", only?: string[]) => ({ mode, only, isParallel: true });
    expect(called(ask("weather?", { tools, toolUse: use("none") }))).toEqual([]);
    expect(called(ask("Hello", { tools, toolUse: use("required") }))).toEqual(["get_weather"]);
    expect(called(ask("weather?", { tools, toolUse: use("required", ["stock_price"]) }))).toEqual([
      "stock_price",
    ]);
  });

  test("has arguments from the user's text", () => {
    const input = events(ask("What is the weather in Paris?", { tools }))
      .map((event) => (event.kind === "input" ? event.piece : ""))
      .join("");
    expect(JSON.parse(input)).toEqual({ city: "Paris" });
  });

  test("has a distinct id that is stable for the same prompt", () => {
    const ids = (text: string): string[] =>
      events(ask(text, { tools })).flatMap((event) => (event.kind === "call" ? [event.id] : []));
    const both = ids("weather and stock price");
    expect(new Set(both).size).toBe(2);
    expect(ids("weather and stock price")).toEqual(both);
    expect(ids("weather and stock price!")).not.toEqual(both);
  });
});

describe("a scripted agent", () => {
  const tools = [weather, stocks];
  const plan = [
    { tool: "get_weather", input: { city: "Oslo" }, text: "First." },
    { text: "Done." },
  ];
  const script = turn("user", `steps: ${JSON.stringify(plan)} end of steps`);
  const after = (...more: Turn[]): Prompt => ask("", { tools, turns: [script, ...more] });
  const said = turn("assistant", "First.");

  test("takes a step in each of its turns", () => {
    const [call] = events(after()).filter((event) => event.kind === "call");
    expect(call).toMatchObject({ name: "get_weather" });
    expect(textOf(after())).toBe("First.");
    const input = events(after()).map((event) => (event.kind === "input" ? event.piece : ""));
    expect(input.join("")).toBe('{"city":"Oslo"}');
    expect(textOf(after(said, turn("tool", "rain")))).toBe("Done.");
    expect(textOf(after(said, turn("tool", "rain"), turn("user", "a reminder")))).toBe("Done.");
    expect(finishOf(after(said, turn("tool", "rain"))).reason).toBe("stop");
  });

  test("calls no tool of its own accord: an agent's tools change things", () => {
    const many = Array.from({ length: 9 }, (_, index) =>
      functionTool(`weather_${index}`, "weather"),
    );
    expect(finishOf(ask("What is the weather? weather_3", { tools: many })).reason).toBe("stop");
    const text = "<reminder>Be brief.</reminder>\necho: hello there";
    expect(textOf(ask(text, { tools: many }))).toBe("hello there");
  });

  test("reads a script that its agent has quoted, and says which tool is absent", () => {
    const quoted = JSON.stringify(`${script.text} "now"`);
    const asking = (text: string): Prompt => ask("", { tools, turns: [turn("user", text)] });
    const [call] = events(asking(quoted)).filter((event) => event.kind === "call");
    expect(call).toMatchObject({ name: "get_weather" });
    const absent = 'steps: [{"tool":"get_time"}] end of steps';
    expect(textOf(asking(absent))).toContain("calls get_time; the agent offers get_weather");
  });

  test("answers as ever without tools or steps", () => {
    expect(textOf(ask(script.text))).not.toBe("First.");
    const over = after(said, turn("tool", "rain"), said, turn("user", "Tell me a story"));
    expect(textOf(over)).toContain("story");
  });
});

describe("the tokenizer", () => {
  test("loses no text and counts the tokens it returns", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const tokens = [...tokenize(text)];
        expect(tokens.join("")).toBe(text);
        expect(countTokens(text)).toBe(tokens.length);
      }),
    );
  });
});

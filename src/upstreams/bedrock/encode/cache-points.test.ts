import { expect, test } from "bun:test";
import { modelWith } from "../../../../test/bedrock/checked-encode.ts";
import { cachePoint, type ContentBlock, type Turn } from "./converse-body.ts";
import { addCachePoints, limitCachePoints, type PromptBlocks } from "./cache-points.ts";

const claude = modelWith("us.anthropic.claude-sonnet-4-6").capabilities;
const nova = modelWith("us.amazon.nova-lite-v1:0").capabilities;
const long = { text: "word ".repeat(1_100) };
const short = { text: "Hi." };

function promptOf(systemText = long): PromptBlocks {
  const turn = (role: Turn["role"]): Turn => ({ role, content: [short] });
  return {
    tools: [{ toolSpec: { name: "look", inputSchema: { json: { type: "object" } } } }],
    system: [systemText],
    turns: [turn("user"), turn("assistant"), turn("user"), turn("assistant"), turn("user")],
  };
}

/** The positions of the points in tools, instructions and each turn. */
function pointsIn({ tools, system, turns }: PromptBlocks): readonly number[] {
  return [tools, system, ...turns.map(({ content }) => content)].map((list) =>
    list.findIndex((block) => "cachePoint" in block),
  );
}

test("points follow the instructions and the last two turns of the user", () => {
  const prompt = promptOf();
  addCachePoints(prompt, claude);
  // The tools alone are too short.
  expect(pointsIn(prompt)).toEqual([-1, 1, -1, -1, 1, -1, 1]);
});

test("long tools get a point where the model takes one", () => {
  const ofTools = (capabilities: typeof claude): readonly number[] => {
    const prompt = promptOf();
    const [first] = prompt.tools;
    if (first !== undefined) prompt.tools.push(...Array.from({ length: 60 }, () => first));
    addCachePoints(prompt, capabilities);
    return pointsIn(prompt);
  };
  expect(ofTools(claude)).toEqual([61, 1, -1, -1, 1, -1, 1]);
  expect(ofTools(nova)).toEqual([-1, 1, -1, -1, 1, -1, 1]);
});

test("a prompt that is too short to be cached gets none", () => {
  const prompt = promptOf(short);
  addCachePoints(prompt, claude);
  expect(pointsIn(prompt)).toEqual([-1, -1, -1, -1, -1, -1, -1]);
});

test("one point of the caller's prevents others", () => {
  const prompt = promptOf();
  prompt.turns[2]?.content.push(cachePoint);
  addCachePoints(prompt, claude);
  expect(pointsIn(prompt)).toEqual([-1, -1, -1, -1, 1, -1, -1]);
});

const marked = (text: string): ContentBlock[] => [{ text }, cachePoint];

test("four cache points stay as they are", () => {
  const contents = [[...marked("a"), ...marked("b")], marked("c"), marked("d")];
  const before = structuredClone(contents);
  limitCachePoints(contents);
  expect(contents).toEqual(before);
});

test("of more than four cache points the last four stay, with all other blocks in order", () => {
  const contents = [
    [...marked("a"), ...marked("b")],
    marked("c"),
    [...marked("d"), ...marked("e")],
  ];
  contents.push([{ text: "f" }], marked("g"));
  limitCachePoints(contents);
  expect(contents).toEqual([
    [{ text: "a" }, { text: "b" }],
    marked("c"),
    [...marked("d"), ...marked("e")],
    [{ text: "f" }],
    marked("g"),
  ]);
});

test("hundreds of thousands of cache points in one turn are removed in one pass", () => {
  const content = Array.from({ length: 400_000 }, () => marked("a")).flat();
  limitCachePoints([content]);
  expect(content.length).toBe(400_004);
  expect(content.slice(-8)).toEqual([1, 2, 3, 4].flatMap(() => marked("a")));
});

test("an hour after five minutes becomes five minutes, and an hour before them stays", () => {
  const hour = { cachePoint: { type: "default", ttl: "1h" } } as const;
  const contents: ContentBlock[][] = [[{ text: "a" }, hour], marked("b"), [{ text: "c" }, hour]];
  limitCachePoints(contents);
  expect(contents).toEqual([[{ text: "a" }, hour], marked("b"), marked("c")]);
});

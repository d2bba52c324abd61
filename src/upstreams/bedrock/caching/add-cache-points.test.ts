import { expect, test } from "bun:test";
import { modelWith } from "../../../../test/bedrock/checked-encode.ts";
import { cachePoint, type Turn } from "../encode/converse-body.ts";
import { addCachePoints } from "./add-cache-points.ts";
import type { PromptBlocks } from "./prompt-blocks.ts";

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

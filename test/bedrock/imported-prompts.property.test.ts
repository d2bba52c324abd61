import { expect, test } from "bun:test";
import fc from "fast-check";
import { readTemplate } from "../../simulator/bedrock/imported.ts";
import {
  llamaPrompt,
  mistralPrompt,
  qwenPrompt,
  type SpokenConversation,
} from "../../src/upstreams/bedrock/invoke/prompt-template.ts";
import { runsOf } from "../support/requirement.ts";

const templates = { llama: llamaPrompt, mistral: mistralPrompt, qwen: qwenPrompt } as const;

const tokens = [
  "<|begin_of_text|>",
  "<|start_header_id|>",
  "<|end_header_id|>\n\n",
  "<|eot_id|>",
  "<|im_start|>",
  "<|im_end|>\n",
  "<|endoftext|>",
  "<s>",
  "</s>",
  "[INST] ",
  " [/INST]",
  "[SYSTEM_PROMPT]",
  "system",
  "assistant",
];
/** Tokens whole, in halves, and within each other, between other words. */
const piece = fc.oneof(
  fc.string(),
  fc.constantFrom(...tokens),
  fc
    .constantFrom(...tokens, "<|", "|>", "<", "[", "]")
    .chain((token) => fc.nat({ max: token.length }).map((end) => token.slice(0, end))),
  fc
    .tuple(fc.constantFrom(...tokens), fc.constantFrom(...tokens), fc.nat({ max: 9 }))
    .map(([outer, inner, place]) => outer.slice(0, place) + inner + outer.slice(place)),
);
const text = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(""));

const conversation: fc.Arbitrary<SpokenConversation> = fc.record({
  system: text,
  turns: fc
    .array(text, { minLength: 1, maxLength: 6 })
    .map((texts) =>
      texts.map((said, index) => ({ role: index % 2 ? "assistant" : "user", text: said }) as const),
    ),
});

/** What was said, whatever was done to tokens and at the edges. */
function plain(said: string): string {
  return said.replaceAll(/\s/g, "");
}

test.each(["llama", "mistral", "qwen"] as const)(
  "a %s prompt has the turns that were said and no others, whatever they hold",
  (name) => {
    fc.assert(
      fc.property(conversation, ({ system, turns }) => {
        const read = readTemplate(templates[name]({ system, turns }), name);
        const said = turns.map((turn) => plain(turn.text));
        const [first = ""] = said;
        const open = turns.at(-1)?.role === "user" ? [""] : [];
        if (name === "mistral") {
          const expected = [plain(system) + first, ...said.slice(1), ...open];
          expect(read.map((turn) => plain(turn.text))).toEqual(expected);
          return;
        }
        const instructions = system === "" ? [] : [plain(system)];
        expect(read.map((turn) => plain(turn.text))).toEqual([...instructions, ...said, ...open]);
        expect(read[0]?.role).toBe(system === "" ? "user" : "system");
      }),
      { numRuns: runsOf(500) },
    );
  },
);

const greeting: SpokenConversation = {
  system: "Be brief.",
  turns: [
    { role: "user", text: "Hi" },
    { role: "assistant", text: "Hello!" },
    { role: "user", text: "Who are you?" },
  ],
};

test.each([
  [
    "llama",
    "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>" +
      "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>" +
      "<|start_header_id|>assistant<|end_header_id|>\n\nHello!<|eot_id|>" +
      "<|start_header_id|>user<|end_header_id|>\n\nWho are you?<|eot_id|>" +
      "<|start_header_id|>assistant<|end_header_id|>\n\n",
  ],
  ["mistral", "<s>[INST] Be brief.\n\nHi [/INST] Hello!</s>[INST] Who are you? [/INST]"],
  [
    "qwen",
    "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n" +
      "<|im_start|>assistant\nHello!<|im_end|>\n<|im_start|>user\nWho are you?<|im_end|>\n" +
      "<|im_start|>assistant\n",
  ],
] as const)("the %s template, to the letter", (name, prompt) => {
  expect(templates[name](greeting)).toBe(prompt);
});

test.each(["llama", "mistral", "qwen"] as const)(
  "%s goes on from words of the assistant",
  (name) => {
    const turns = [...greeting.turns, { role: "assistant", text: "I am" }] as const;
    expect(templates[name]({ ...greeting, turns })).toEndWith("I am");
  },
);

test("words that only look a little like tokens stay as they are", () => {
  const text = "a <| b |> c, [1], [note], <span>, <|two words|>, [/X]";
  for (const template of Object.values(templates)) {
    expect(template({ system: "", turns: [{ role: "user", text }] })).toContain(text);
  }
});

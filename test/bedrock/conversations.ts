import fc from "fast-check";
import type { Block, Conversation, Tool, Turn } from "../../src/domain/chat/conversation.ts";

/** Conversations as Messages and Responses have them: ordered blocks, several results in a turn. */
export function orderedConversations(options: {
  readonly takesDocuments: boolean;
  readonly takesTools: boolean;
}): fc.Arbitrary<Conversation> {
  const tools = options.takesTools ? fc.constantFrom([], offered) : fc.constant([]);
  return fc
    .record({
      wire: fc.constantFrom("messages" as const, "responses" as const),
      opening: fc.array(fc.oneof(instruction, greeting), { maxLength: 2 }),
      exchanges: fc.array(exchangeOf(options.takesDocuments), { minLength: 1, maxLength: 4 }),
      ending: fc.constantFrom([], [later]),
      tools,
      thinking: fc.constantFrom(
        undefined,
        { mode: "enabled" as const },
        { mode: "enabled" as const, budget: 1_024 },
        { mode: "adaptive" as const, effort: "high", display: "omitted" },
        { mode: "disabled" as const },
        { effort: "minimal" },
      ),
    })
    .map(({ opening, exchanges, ending, ...rest }) => ({
      model: "alias",
      isStreamed: false,
      caps: [{ field: "max_tokens", tokens: 4_096, isDemanded: true }],
      options: {},
      extra: {},
      ...rest,
      turns: numbered([...opening, ...exchanges.flat(), ...ending]),
    }));
}

type Loose = Pick<Turn, "role" | "blocks">;

const at = "";
const blank = fc.constantFrom("", " ", "\n\t");
const word = fc.constantFrom("hi", "Tell me a joke. ", "💡");
const mark = fc.constantFrom(
  undefined,
  undefined,
  { form: "control" as const },
  { form: "control" as const, ttl: "1h" as const },
);
const text: fc.Arbitrary<Block> = fc
  .tuple(fc.oneof(word, word, blank), mark)
  .map(([said, cacheMark]) => ({ type: "text", text: said, cacheMark, at }));
const spoken: Block = { type: "text", text: "Go on", at };
const foreign: fc.Arbitrary<Block> = fc.constant({ type: "foreign", value: { type: "x" }, at });
const document: fc.Arbitrary<Block> = fc
  .tuple(word, fc.option(word, { nil: undefined }))
  .map(([said, context]) => ({ type: "document", text: said, filename: "a.md", context, at }));
const thought: fc.Arbitrary<Block> = fc.constantFrom(
  { type: "reasoning", text: "Hm", at },
  { type: "reasoning", text: "Hm", opaque: "signed elsewhere", at },
  { type: "reasoning", text: "", opaque: "redacted", isRedacted: true, at },
);
const instruction: fc.Arbitrary<Loose> = fc
  .tuple(fc.constantFrom("system" as const, "developer" as const), text)
  .map(([role, block]) => ({ role, blocks: [block] }));
const greeting: fc.Arbitrary<Loose> = text.map((block) => ({ role: "assistant", blocks: [block] }));
const later: Loose = {
  role: "system",
  blocks: [{ type: "text", text: "In French.", at }],
};

/** What the user says, what the assistant answers, and the results of its calls, with words. */
function exchangeOf(takesDocuments: boolean): fc.Arbitrary<readonly Loose[]> {
  const others = takesDocuments ? [document, foreign] : [foreign];
  return fc
    .record({
      asked: fc.array(fc.oneof(text, ...others), { maxLength: 3 }),
      answered: fc.array(fc.oneof(text, text, thought), { maxLength: 4 }),
      calls: fc.nat(3),
      isFirst: fc.boolean(),
      beside: fc.array(fc.oneof(text, ...others), { maxLength: 2 }),
      isError: fc.constantFrom(undefined, true as const),
      between: fc.constantFrom([], [later]),
      position: fc.nat(4),
    })
    .map(({ asked, answered, calls, isFirst, beside, isError, between, position }) => {
      const ids = Array.from({ length: calls }, (_, index) => `call.${index}`);
      const called = ids.map(callOf);
      const results = ids.toReversed().map((callId): Block => {
        const content = [{ type: "text", text: "21", at }] as const;
        return { type: "tool-result", callId, content, isError, at };
      });
      // Without its words, the user's turns around it would be one, with too many documents.
      const said = takesDocuments ? [...answered, spoken] : answered;
      const blocks = [...said.slice(0, position), ...called, ...said.slice(position)];
      return [
        { role: "user", blocks: [...asked, spoken] },
        ...between,
        { role: "assistant", blocks },
        { role: "user", blocks: isFirst ? [...results, ...beside] : [...beside, ...results] },
        { role: "user", blocks: [spoken] },
      ];
    });
}

function callOf(id: string, index: number): Block {
  const namespace = index === 0 ? "files" : undefined;
  return index === 1
    ? { type: "tool-call", id, kind: "custom", name: "patch", arguments: "*** x", at }
    : { type: "tool-call", id, kind: "function", name: "look", namespace, arguments: "{}", at };
}

const offered: readonly Tool[] = [
  { kind: "function", name: "look", namespace: "files", at: "tools[0]" },
  { kind: "function", name: "look", description: "Looks.", at: "tools[1]" },
  { kind: "custom", name: "patch", at: "tools[2]" },
];

function numbered(turns: readonly Loose[]): readonly Turn[] {
  return turns.map((turn, index) => ({ ...turn, at: `messages[${index}]` }));
}

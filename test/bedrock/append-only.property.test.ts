import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Conversation, Turn } from "../../src/domain/chat/conversation.ts";
import { listOf, objectOf, parseObject } from "../../src/domain/json-fields.ts";
import { modelOf } from "../../src/upstreams/anthropic/models.ts";
import { encodeConverse } from "../../src/upstreams/bedrock/encode/encode-converse.ts";
import { encodeMessages } from "../../src/upstreams/shared/messages/encode-messages.ts";
import { runsOf } from "../support/requirement.ts";
import { modelWith } from "./checked-encode.ts";
import { orderedConversations } from "./conversations.ts";

// The newest models of Claude bind their thoughts to everything before them, so what was sent with
// one answer must stand unchanged at the beginning of what is sent with the next.

const fable = modelWith("us.anthropic.claude-fable-5-1");
const api = { forwarded: new Set<string>(), strictTools: true, endUsers: true };
const encoders: readonly (readonly [string, (conversation: Conversation) => string])[] = [
  ["Converse", (asked) => encodeConverse(asked, fable, { isStreamed: false }).body],
  ["the Messages API", (asked) => encodeMessages(asked, modelOf("claude-fable-5-1"), api).body],
];

describe.each([...encoders])("to %s", (_name, encode) => {
  test("a longer conversation begins as it was sent before", () => {
    let compared = 0;
    const conversations = orderedConversations({ takesDocuments: true, takesTools: true });
    const property = fc.property(conversations, (conversation) => {
      const { turns } = conversation;
      const whole = signedPartsOf(encode(conversation));
      for (const [end, next] of turns.entries()) {
        const before = turns.slice(0, end);
        if (next.role !== "assistant" || !speaks(next) || before.at(-1)?.role !== "user") continue;
        const { fixed, messages } = signedPartsOf(encode({ ...conversation, turns: before }));
        expect(whole.fixed).toEqual(fixed);
        expect(whole.messages.slice(0, messages.length)).toEqual([...messages]);
        compared += 1;
      }
    });
    fc.assert(property, { numRuns: runsOf(200) });
    expect(compared).toBeGreaterThan(10);
  });
});

function speaks({ blocks }: Turn): boolean {
  return blocks.some(
    (block) => block.type === "tool-call" || (block.type === "text" && /\S/.test(block.text)),
  );
}

/** Marks are not signed, and thoughts are left out all together. */
function signedPartsOf(body: string) {
  const isSigned = (block: unknown): boolean => {
    const fields = objectOf(block) ?? {};
    const isThought = String(fields["type"]).endsWith("thinking") || "reasoningContent" in fields;
    return !isThought && !("cachePoint" in fields);
  };
  const plain = JSON.parse(body, (key, value: unknown) => {
    if (key === "cache_control") return undefined;
    return Array.isArray(value) ? value.filter(isSigned) : value;
  }) as unknown;
  const { system, tools, toolConfig, messages } = objectOf(plain) ?? {};
  return {
    fixed: [system, tools, objectOf(toolConfig)?.["tools"]],
    messages: listOf(messages) ?? [],
    isObject: parseObject(body) !== undefined,
  };
}

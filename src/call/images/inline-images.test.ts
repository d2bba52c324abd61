import { expect, test } from "bun:test";
import type { Conversation, ImageBlock, Wire } from "../../domain/chat/conversation.ts";
import { findAddresses, replaceAddresses } from "./inline-images.ts";

const data = "data:image/png;base64,iVBORw0KGgo=";

function image(url: string, at: string): ImageBlock {
  return { type: "image", url, detail: "low", at };
}

function asking(wire: Wire): Conversation {
  const result = { type: "tool-result", callId: "c", at: "m[1].content[0]" } as const;
  const inResult = [
    { type: "text", text: "https://a.example/no-image", at: "" } as const,
    image("HTTPS://a.example/two", "m[1].content[0].content[1]"),
    image("https://a.example/one", "m[1].content[0].content[2]"),
  ];
  return {
    wire,
    model: "m",
    isStreamed: false,
    turns: [
      { role: "user", blocks: [image("https://a.example/one", "m[0].content[0]")], at: "m[0]" },
      { role: "user", blocks: [{ ...result, content: inResult }, image(data, "")], at: "m[1]" },
    ],
    tools: [],
    caps: [],
    options: {},
    extra: {},
  };
}

test.each([
  ["chat", "image_url.url"],
  ["responses", "image_url"],
  ["messages", "source.url"],
] as const)("addresses of %s, also in results of tools, have the field of each", (wire, field) => {
  expect([...findAddresses(asking(wire))]).toEqual([
    ["https://a.example/one", `m[0].content[0].${field}`],
    ["HTTPS://a.example/two", `m[1].content[0].content[1].${field}`],
  ]);
});

test("all of them are replaced, and nothing else", () => {
  const before = asking("chat");
  const replaced = replaceAddresses(before, (url) => `got ${url.slice(-3)}`);
  const text = JSON.stringify(before)
    .replaceAll('"url":"https://a.example/one"', '"url":"got one"')
    .replaceAll('"url":"HTTPS://a.example/two"', '"url":"got two"');
  expect(replaced).toEqual(JSON.parse(text) as Conversation);
  expect(findAddresses(replaced).size).toBe(0);
  expect(replaceAddresses(before, () => undefined)).toEqual(before);
});

import { expect, test } from "bun:test";
import { chatOf, streamOf } from "../support/bodies.ts";
import { gatewayOf, startProvider, streamedText, whole } from "./provider.ts";

test("a provider's answers reach the caller, whole and streamed, and its requests are kept", async () => {
  await using provider = startProvider(() => whole("Hello there"));
  await using gateway = await gatewayOf([provider]);
  const chat = { model: "chat-model", messages: [{ role: "user", content: "Hi" }] };
  const answer = await chatOf(await gateway.post("/v1/chat/completions", chat));
  expect(answer.choices[0]?.message.content).toBe("Hello there");
  expect(provider.requests[0]).toMatchObject({
    path: "/v1/chat/completions",
    body: { model: "provider-model", messages: chat.messages },
  });

  provider.answers(() => streamedText("Good ", "bye"));
  const response = await gateway.post("/v1/chat/completions", { ...chat, stream: true });
  const { chunks, isDone } = await streamOf(response);
  const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
  expect({ text, isDone, asked: provider.requests.length }).toEqual({
    text: "Good bye",
    isDone: true,
    asked: 1,
  });
});

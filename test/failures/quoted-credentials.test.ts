import { afterAll, beforeAll, expect, test } from "bun:test";
import { jsonAnswer, ScriptedUpstream } from "../golden/scripted-upstream.ts";

/** An upstream's credentials, in forms that no pattern recognises. */
const apiKey = "q7Wn/2mX+vT4cLz9";
const inQuery = "r5Yp~8kD.bJ1hGs3";

let upstream: ScriptedUpstream;
beforeAll(async () => {
  const settings = `api_key: "${apiKey}", query: { key: "${inQuery}" }`;
  upstream = await ScriptedUpstream.start("openai", {}, settings);
});
afterAll(async () => {
  await upstream[Symbol.asyncDispose]();
});

/** The message that the caller gets of an upstream's refusal. */
async function refusedWith(message: string, rest: object = {}): Promise<string> {
  const response = await upstream.chat(jsonAnswer({ error: { message, ...rest } }, 400));
  expect(response.status).toBe(400);
  return response.text();
}

/** Texts that an upstream quotes, with the parts that the caller must not see. */
const quotes: readonly ((credential: string) => { quote: string; secret: string })[] = [
  (credential) => alone(credential),
  (credential) => alone(encodeURIComponent(credential)),
  (credential) => ({ quote: JSON.stringify({ key: `Bearer ${credential}` }), secret: credential }),
  (credential) => alone(Buffer.from(credential).toString("base64")),
  (credential) => {
    const quote = Buffer.from(`user:${credential}`).toString("base64url");
    return { quote, secret: quote.slice(8) };
  },
  (credential) => alone(Buffer.from(credential).toString("hex")),
  (credential) => alone(credential.replace(/.{6}/g, "$&\n")),
];

function alone(quote: string): { quote: string; secret: string } {
  return { quote, secret: quote };
}

test("no caller sees a credential of the gateway in an upstream's message, in any encoding", async () => {
  for (const credential of [apiKey, inQuery]) {
    for (const quoted of quotes) {
      const { quote, secret } = quoted(credential);
      const text = await refusedWith(`You sent ${quote} here`, { param: credential, code: quote });
      expect(text).toContain("[removed]");
      for (let start = 0; start + 5 <= secret.length; start += 1) {
        expect(text).not.toContain(secret.slice(start, start + 5));
      }
    }
  }
});

test("no caller sees a part of a credential where the message is cut", async () => {
  for (let before = 1_000 - apiKey.length; before <= 1_000; before += 1) {
    const words = `${"a ".repeat(500).slice(0, before)}`;
    const text = await refusedWith(`${words}${apiKey} and more`);
    expect(text).not.toContain(apiKey.slice(0, 6));
  }
});

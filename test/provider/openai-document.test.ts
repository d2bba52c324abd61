import { describe, expect, test } from "bun:test";
import { chatOf, streamOf } from "../support/bodies.ts";
import { startGateway } from "../support/gateway.ts";
import { profileNames } from "../../src/upstreams/openai/profiles.ts";
import { startSimulator } from "../../simulator/simulator.ts";

/** The examples of the page on kind `openai`, with the simulator in place of their servers. */

const page = await Bun.file(
  new URL("../../docs/upstreams/openai.md", import.meta.url).pathname,
).text();
const examples = [...page.matchAll(/^ *```yaml\n([\s\S]*?)^ *```/gm)].map(([, text = ""]) => {
  const indent = /^ */.exec(text)?.[0] ?? "";
  return text.replaceAll(new RegExp(`^${indent}`, "gm"), "");
});
const profilesIn = (text: string): string[] =>
  [...text.matchAll(/profile: ([\w-]+)/g)].map(([, name = ""]) => name);

test("every profile has an example", () => {
  expect(new Set(examples.flatMap(profilesIn))).toEqual(new Set(profileNames));
});

/** `profile: x` with another address in place of the server's. */
function pointedAt(url: string, text: string): string {
  return text
    .replaceAll(/,? *base_url: [^\s,}]+/g, "")
    .replaceAll(/\n +(?=\n)/g, "")
    .replaceAll(/\$\{\w+\}/g, "sk-simulator")
    .replaceAll(/^( *)(.*\{ )?(kind: openai,?)/gm, (_, indent: string, head = "", kind: string) =>
      head === ""
        ? `${indent}base_url: ${url}/v1\n${indent}${kind}`
        : `${indent}${head}base_url: "${url}/v1", ${kind}`,
    );
}

describe.each(
  examples
    .filter((text) => text.includes("targets:"))
    .map((text) => [profilesIn(text).join(", "), text] as const),
)("%s", (_, example) => {
  // Each of the targets alone, so that none hides behind the first.
  const targets = [...example.matchAll(/\{ upstream: ([\w-]+), model: [^}]+(?:\} )?\}/g)];
  test.each(targets.map(([target, name = ""]) => [name, target] as const))(
    "answers at %s",
    async (_name, target) => {
      await using simulator = startSimulator();
      const [upstreams = "", models = ""] = pointedAt(simulator.url, example).split(/^models:/m);
      const [head = ""] = models.split("targets:");
      await using gateway = await startGateway({
        sections: {
          upstreams: upstreams.slice(upstreams.indexOf("upstreams:") + "upstreams:".length),
          models: `${head}targets: [${target.replace(/, priority: \d/, "")}]\n`,
        },
      });
      const model = /^ {2}([\w.-]+):/m.exec(models)?.[1];
      const ask = (fields: object) =>
        gateway.post("/v1/chat/completions", { model, max_completion_tokens: 20, ...fields });
      const messages = [
        { role: "developer", content: "Be brief." },
        { role: "user", content: "echo: Hello there" },
      ];
      const wholeAnswer = await chatOf(await ask({ messages }));
      expect(wholeAnswer.choices[0]?.message.content).toContain("Hello there");
      const streamedAnswer = await streamOf(await ask({ messages, stream: true }));
      const text = streamedAnswer.chunks.map(({ choices }) => choices[0]?.delta.content ?? "");
      expect(text.join("")).toContain("Hello there");
      expect(streamedAnswer.isDone).toBe(true);
    },
  );
});

import { describe, expect, test } from "bun:test";
import { configWarnings } from "../src/config/problems/warnings.ts";
import { formatProblems, parseConfig } from "../src/config/load.ts";
import { upstreamKinds } from "../src/upstreams/kinds.ts";
import { chatOf } from "./support/bodies.ts";
import { echoKind, startEchoServer } from "./support/echo-kind.ts";
import { startGateway } from "./support/gateway.ts";

const kinds = [...upstreamKinds, echoKind];

const sectionsFor = (url: string) => ({
  upstreams: `{ valley: { kind: echo, url: "${url}", voice: "Oh, " } }`,
  models: `
  chat-model:
    kind: chat
    context_window: 1000
    targets: [{ upstream: valley, model: cliff, echo: { greeting: "you say: " } }]`,
});

describe("a kind of upstream that is added to the list", () => {
  test("serves chat calls, whole and streamed, with what the file says to it", async () => {
    await using server = startEchoServer();
    await using gateway = await startGateway({ sections: sectionsFor(server.url), kinds });
    const hello = { model: "chat-model", messages: [{ role: "user", content: "hello there" }] };
    const whole = await chatOf(await gateway.post("/v1/chat/completions", hello));
    expect(whole.choices[0]?.message.content).toBe("Oh, you say: hello there ");
    const streamed = await gateway.post("/v1/chat/completions", { ...hello, stream: true });
    const text = await streamed.text();
    expect(text).toContain('"content":"hello "');
    expect(text).toEndWith("data: [DONE]\n\n");
    const rows = await gateway.usage();
    expect(rows.map(({ target, outcome }) => [target, outcome])).toEqual([
      ["valley@near/cliff", "completed"],
      ["valley@near/cliff", "completed"],
    ]);
  });

  test("makes the gateway not ready while no target of any model has credentials", async () => {
    await using server = startEchoServer();
    const isLacking = { near: true, far: true };
    const sides = new Map<unknown, keyof typeof isLacking>();
    const guarded: typeof echoKind = {
      ...echoKind,
      build: (upstream) => {
        const [near, far] = echoKind.build(upstream);
        if (near === undefined || far === undefined) throw new Error("a side is missing");
        sides.set(near.settings, "near").set(far.settings, "far");
        return [near, far];
      },
      createAdapter: (settings, services) => ({
        ...echoKind.createAdapter(settings, services),
        whyNoCredential: () => (isLacking[sides.get(settings) ?? "near"] ? "no role" : undefined),
      }),
    };
    await using gateway = await startGateway({
      sections: sectionsFor(server.url),
      kinds: [...upstreamKinds, guarded],
    });
    const readiness = async () => {
      const response = await fetch(`${gateway.url}/readyz`);
      return [response.status, await response.text()];
    };
    expect(await readiness()).toEqual([
      503,
      "no target of any model has credentials (valley@near, valley@far): run `sluice doctor`\n",
    ]);
    isLacking.far = false;
    expect(await readiness()).toEqual([200, "ready\n"]);
  });

  test("makes of one upstream and target as many as it says", () => {
    const config = read(fileWith({}));
    expect([...config.upstreams.keys()]).toEqual(["valley@near", "valley@far", "local"]);
    const targets = config.environments[0]?.models.get("chat-model")?.targets;
    expect(targets?.map(({ id, priority }) => [id, priority])).toEqual([
      ["valley@near/cliff", 2],
      ["valley@far/cliff", 2.01],
    ]);
  });

  test.each([
    [{ upstream: "url: 1" }, "upstreams.valley.url: must be text"],
    [
      { upstream: "url: 'http://a', voise: b" },
      "upstreams.valley.voise: unknown key; did you mean 'voice'?",
    ],
    [{ upstream: "url: 'http://a', voice: none" }, "upstreams.valley.voice: must be a voice"],
    [{ target: "upstream: valley, model: mute" }, "targets[0].model: says nothing"],
    [{ target: "upstream: valley, model: a, echo: {}" }, "targets[0].echo.greeting: is required"],
    [
      { target: "upstream: local, model: a, echo: { greeting: a }" },
      "targets[0].echo: is for targets at upstreams of kind echo only",
    ],
  ])("has its own say in what is wrong with a file: %j", (parts, problem) => {
    const result = parseConfig(fileWith(parts), source, kinds);
    expect(result.ok ? "" : formatProblems("file", result.problems)).toContain(problem);
  });

  test("tells of its models", () => {
    const config = read(fileWith({ target: "upstream: valley, model: old" }));
    expect(configWarnings(config, 0)).toEqual(["chat-model fades"]);
  });

  test("is unknown to a list without it", () => {
    const result = parseConfig(fileWith({}), source);
    expect(result.ok ? "" : formatProblems("file", result.problems)).toContain(
      "upstreams.valley.kind: must be one of: openai (OpenAI's, spoken by many servers: `profile` names those that Sluice knows)",
    );
  });
});

const source = { name: "file", env: {} };

interface Parts {
  readonly upstream?: string;
  readonly target?: string;
}

function fileWith({ upstream = "url: 'http://a'", target = defaultTarget }: Parts): string {
  return `
environments: [{ name: test, hosts: ["*"], models: ["*"] }]
upstreams:
  valley: { kind: echo, ${upstream} }
  local: { kind: openai, base_url: "http://b" }
models: { chat-model: { kind: chat, context_window: 1000, targets: [{ ${target} }] } }
`;
}

const defaultTarget = "upstream: valley, model: cliff, priority: 2";

function read(text: string) {
  const result = parseConfig(text, source, kinds);
  if (!result.ok) throw new Error(formatProblems("file", result.problems));
  return result.config;
}

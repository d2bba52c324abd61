import { afterAll, beforeAll, expect, test } from "bun:test";
import { chatServers, startSimulator } from "../../simulator/simulator.ts";
import { runHere } from "./run-here.ts";
import { createFolder, type SluiceFolder } from "./sluice-folder.ts";
import { chunk, completion, streamed, vectorsAnswer } from "../provider/provider.ts";

/** Servers with a quirk each, named by their model. */

type Body = Readonly<Record<string, unknown>>;
interface Message {
  readonly role: string;
  readonly tool_calls?: readonly Body[];
  readonly reasoning_content?: unknown;
}

const refuse = (message: string, status = 400): Response =>
  Response.json({ error: { message, type: "invalid_request_error" } }, { status });
const usage = (tokens: number): object => ({
  usage: { prompt_tokens: 1, completion_tokens: tokens, total_tokens: tokens + 1 },
});

function answerOf(body: Body): Response {
  if ("input" in body) {
    const isIds = Array.isArray(body["input"]) && typeof body["input"][0] === "number";
    const isRefused = body["model"] === "texts-only" && isIds;
    return isRefused ? refuse("input must be a string") : vectorsAnswer([[1, 2]]);
  }
  const { model, stream, n, max_completion_tokens: cap } = body;
  const messages = (body["messages"] ?? []) as readonly Message[];
  const called = messages.find(({ tool_calls }) => tool_calls !== undefined);
  if (model === "streams-only" && stream !== true) return refuse("must be a stream");
  if (model === "no-developer" && messages.some(({ role }) => role === "developer")) {
    return refuse("Unexpected message role.", 500);
  }
  if (model === "thoughts" && called !== undefined && called.reasoning_content === undefined) {
    return refuse("Missing `reasoning_content` field in the assistant message");
  }
  if (model === "signatures" && called?.tool_calls?.[0]?.["extra_content"] === undefined) {
    if (called !== undefined) return refuse("Function call is missing a thought_signature");
  }
  if (stream === true && model !== "no-streams") {
    return streamed([chunk({ content: "pong" }), chunk({}, { finish_reason: "stop" })]);
  }
  const one = { message: { role: "assistant", content: "pong" }, finish_reason: "stop" };
  const two = n === 2 && model !== "one-choice";
  const choices = two ? [one, { ...one, index: 1 }] : [one];
  const tokens = cap === undefined || model === "no-cap" ? 180 : 16;
  return Response.json(completion("", { choices, ...usage(tokens) }));
}

let folder: SluiceFolder;
let isDown = false;
const asked: string[] = [];
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const body = (await request.json()) as Body;
    asked.push(String(body["model"]));
    return isDown ? new Response("", { status: 503 }) : answerOf(body);
  },
});
beforeAll(() => {
  folder = createFolder({ isOffline: false });
});
afterAll(async () => {
  folder[Symbol.dispose]();
  await server.stop(true);
});

async function diagnose(
  model: string,
  settings: string,
  {
    url = `http://127.0.0.1:${server.port}/v1`,
    options = ["--probe"],
  }: { readonly url?: string; readonly options?: readonly string[] } = {},
) {
  const kind = model === "texts-only" ? "embedding" : "chat";
  const path = await folder.write(
    "sluice.yaml",
    `data_dir: ${folder.path}/state
storage: { url: "sqlite:${folder.path}/state/sluice.db" }
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams:
  server: { kind: openai, base_url: "${url}"${settings} }
models:
  alias: { kind: ${kind}, context_window: 8000, targets: [{ upstream: server, model: ${model} }] }
`,
  );
  asked.length = 0;
  const { exitCode, output } = await runHere(["doctor", "--config", path, ...options]);
  return { exitCode, output: output.replaceAll(/\s+/g, " ") };
}

const quirky = [
  ["no-cap", "max_tokens_field: max_tokens"],
  ["no-developer", "instruction_role: system"],
  ["streams-only", "quirks: [streams_only]"],
  ["no-streams", "quirks: [ignores_stream]"],
  ["one-choice", "quirks: [one_choice]"],
  ["thoughts", "quirks: [needs_thoughts]"],
  ["signatures", "quirks: [needs_signatures]"],
  ["texts-only", "takes_token_ids: false"],
] as const;

test.each(quirky)("a server with %s is told to need %s", async (model, setting) => {
  const { exitCode, output } = await diagnose(model, "");
  expect(output).toContain(`add \`${setting}\` to the upstream server`);
  expect(output.match(/to the upstream server/g)).toHaveLength(1);
  expect(exitCode).toBe(0);
});

test.each(quirky)("and with it set %s needs nothing more of the kind", async (model, setting) => {
  const { output } = await diagnose(model, `, ${setting}`);
  expect(output).not.toContain(`add \`${setting}\``);
});

/** What the simulator's servers do, and the setting for it. */
const settings: Readonly<Record<string, string>> = {
  max_tokens_only: "max_tokens_field: max_tokens",
  no_developer: "instruction_role: system",
  streams_only: "quirks: [streams_only]",
  one_choice: "quirks: [one_choice]",
  needs_thoughts: "quirks: [needs_thoughts]",
  needs_signatures: "quirks: [needs_signatures]",
};

test.each(Object.entries(chatServers.profiles))(
  "of a server as %s doctor names what the profile sets, and with it nothing",
  async (profile, { quirks }) => {
    await using simulator = startSimulator();
    const own = async (more: string): Promise<string[]> => {
      const { output } = await diagnose(`profile-${profile}`, more, { url: simulator.url });
      return [...output.matchAll(/add `([^`]+)` to the upstream server/g)].map(
        ([, set = ""]) => set,
      );
    };
    const needed = quirks.flatMap((quirk) => settings[quirk] ?? []);
    // Servers that take streams alone are asked the other questions once that is known.
    const isFirst = needed.includes("quirks: [streams_only]");
    expect((await own("")).toSorted()).toEqual(
      isFirst ? ["quirks: [streams_only]"] : needed.toSorted(),
    );
    expect(await own(`, profile: ${profile}`)).toEqual([]);
  },
);

test("a target is asked by each API that an alias calls it by, and for vectors", async () => {
  await using simulator = startSimulator();
  const path = await folder.write(
    "apis.yaml",
    `data_dir: ${folder.path}/state
storage: { url: "sqlite:${folder.path}/state/sluice.db" }
environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams: { server: { kind: openai, base_url: "${simulator.url}" } }
models:
  one: { kind: chat, context_window: 8000, targets: [{ upstream: server, model: m }] }
  same: { kind: chat, context_window: 8000, targets: [{ upstream: server, model: m }] }
  other: { kind: chat, context_window: 8000, targets: [{ upstream: server, model: m, openai: { api: responses } }] }
  vectors: { kind: embedding, context_window: 8000, targets: [{ upstream: server, model: m }] }
`,
  );
  const { output } = await runHere(["doctor", "--config", path]);
  const asked = [...output.matchAll(/(\w+) at server\/m answers/g)].map(([, alias]) => alias);
  expect(asked).toEqual(["one", "other", "vectors"]);
});

test("a server without quirks needs none, and without --probe none is asked", async () => {
  const { output } = await diagnose("plain", "");
  expect(output).not.toContain("to the upstream server");
  expect(asked.length).toBeGreaterThan(5);
  await diagnose("no-developer", "", { options: [] });
  expect(asked).toHaveLength(1);
});

test("a server that fails is not probed", async () => {
  isDown = true;
  const { output, exitCode } = await diagnose("plain", "");
  isDown = false;
  expect(output).not.toContain("to the upstream server");
  expect([asked.length, exitCode]).toEqual([1, 0]);
});

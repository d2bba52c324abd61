import { afterAll, beforeAll, expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { readLocalAccess } from "../../src/control/sign-in/bootstrap/local-access.ts";
import { unlimited } from "../support/gateway.ts";
import { sizeOf, testWhere } from "../support/requirement.ts";
import { startServing, type ServingProcess } from "../support/sluice-process.ts";
import { fuzzProgram } from "./fuzz-program.ts";
import { fuzzTools, run } from "./tools.ts";

/**
 * OpenAI's published schema against the demo: what it allows is answered in its shapes, and neither
 * that nor what it forbids makes an error of ours. The same requests at every run.
 */
const tools = await fuzzTools();
const longMs = 30 * 60_000;

/** Why a request that the schema allows is refused; by OpenAI as well, unless it says otherwise. */
const reasons: readonly RegExp[] = [
  // Rules that OpenAI's API has and its schema does not tell.
  /^'\$\.input' is invalid\. Please check the API reference\.$/,
  /^Missing required parameter: 'messages\[\d+\]\.content'\.$/,
  /^Invalid value for 'content': expected a string, got null\.$/,
  /^messages\[\d+\]: a function message must follow a function_call\.$/,
  /^messages\[\d+\]: the tool_call_id '.*' belongs to no open tool call/s,
  /^Results are missing for (?:a function_call|tool calls)/,
  /^messages\[\d+\]\.tool_calls\[\d+\]: two tool calls have the id /,
  /^Invalid '(?:functions|tools)\[\d+\]\.[a-z.]*name': (?:string does not match pattern|empty string)/,
  /^Invalid 'response_format\.json_schema\.name': (?:string does not match pattern|empty string)/,
  /^Invalid 'tool_choice\.allowed_tools\.tools': empty array/,
  /^'messages' must contain the word 'json' in some form/,
  /^The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled\.$/,
  /^The 'stream_options' parameter is only allowed when 'stream' is enabled\.$/,
  /^Invalid 'max_(?:completion_)?tokens': integer below minimum value/,
  /^Invalid key in 'logit_bias': .* Expected a token id/s,
  /: file_data is not a data URL with valid base64 data\.$/,
  // What the models of the demo cannot do.
  /^This model does not support \w+\. Remove it from the request\.$/,
  /^max_(?:completion_)?tokens is too large: [\d.e+]+\. This model supports at most/,
  /^This model accepts images only as data, not by URL\./,
  /^Invalid 'dimensions': [\d.e+]+\. This model supports one of 256, 512, 1024\.$/,
  /^'\$\.input' is invalid: it has token ids that the cl100k_base encoding does not have\.$/,
  /^This model does not continue assistant messages\./,
  /: this model does not accept audio\. Send a transcript\.$/,
  /: spoken answers cannot be sent back to this model\. Send their text\.$/,
  // The same of responses.
  /^Missing required parameter: 'input'\.$/,
  /^you must provide a model parameter$/,
  /^Invalid 'input': the conversation is empty\./,
  /^Missing required parameter: '(?:tool_choice\.tools\[\d+\]\.type|input\[\d+\][a-z_.[\]\d]*)'\.$/,
  /^Invalid '(?:tools|input)\[\d+\][a-z.[\]\d]*name': (?:string does not match pattern|empty string)/,
  /^Invalid 'text\.format\.name': (?:string does not match pattern|empty string)/,
  /^Invalid 'tool_choice\.tools': empty array/,
  /^Response input messages must contain the word 'json' in some form/,
  /^Tool choice '.*' (?:not found in|must be specified with) 'tools' parameter\.$/s,
  /^max_output_tokens is too large: [\d.e+]+\. This model supports at most/,
  /^Unsupported content type: ''\./,
  /^Log probabilities of 1 x \d+ tokens with \d+ alternatives each are too large for one answer/,
  // What Sluice does not have.
  /^Unsupported parameter: '[a-z._[\]\d]+' is not supported by this gateway\./,
  /^Previous response with id '.*' not found\. Responses are kept .*\.$/s,
  /^Item with id '.*' not found\./s,
  /^The gateway has no tools of its own, such as web search\./,
  /: file ids are not supported\. Send the file itself in file_data, as a data URL\.$/,
];

const reportSchema = z.object({
  violations: z.record(z.string(), z.unknown()),
  refusals: z.record(z.string(), z.object({ count: z.number(), request: z.string() })),
  statuses: z.record(z.string(), z.number()),
});

let folder: string;
let demo: ServingProcess;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "sluice-fuzz-"));
  const anyPort = ["--data", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
  demo = await startServing(["--data-dir", join(folder, "data"), ...anyPort]);
});
afterAll(async () => {
  await demo[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** The demo's own key has the limits of a plan. */
async function unlimitedKey(): Promise<string> {
  const { token } = readLocalAccess(join(folder, "data")) ?? {};
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const listed = await fetch(`${demo.adminUrl}/admin/v1/applications`, { headers });
  const [application] = z
    .object({ data: z.array(z.object({ id: z.string() })) })
    .parse(await listed.json()).data;
  const made = await fetch(`${demo.adminUrl}/admin/v1/keys`, {
    method: "POST",
    headers,
    body: JSON.stringify({
      application_id: application?.id,
      plan: "enterprise",
      limits: {
        requests_per_minute: unlimited.requestsPerMinute,
        tokens_per_minute: unlimited.tokensPerMinute,
      },
    }),
  });
  return z.object({ api_key: z.string() }).parse(await made.json()).api_key;
}

testWhere(tools.missing === undefined, tools.missing ?? "").each([
  ["openai-api.yaml", "/chat/completions"],
  ["openai-responses.yaml", "/responses"],
])(
  "requests by OpenAI's %s are answered by it, others are refused, and none is an error of ours",
  async (schema, path) => {
    const program = join(folder, "fuzz.py");
    await Bun.write(program, fuzzProgram);
    const perOperation = sizeOf({ quick: 40, all: 400, measured: 400 });
    const perField = sizeOf({ quick: 3, all: 15, measured: 15 });
    const output = await run(
      [
        join(tools.folder, "bin/python"),
        program,
        join(import.meta.dir, schema),
        `${demo.dataUrl}/v1`,
        await unlimitedKey(),
        String(perOperation),
        String(perField),
      ],
      { folder },
    );
    const report = reportSchema.parse(JSON.parse(output));
    process.stdout.write(`${JSON.stringify(report.statuses)}\n`);
    const unexplained = Object.entries(report.refusals).filter(
      ([message]) => !reasons.some((reason) => reason.test(message)),
    );
    expect([report.violations, unexplained]).toEqual([{}, []]);
    expect(report.statuses[`${path} valid 200`]).toBeGreaterThan(perOperation / 2);
    expect(report.statuses[`${path} streamed`]).toBeGreaterThan(10);
    if (path === "/chat/completions") {
      expect(report.statuses["/embeddings valid 200"]).toBeGreaterThan(0);
    }
  },
  longMs,
);

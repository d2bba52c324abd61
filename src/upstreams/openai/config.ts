import { z } from "zod";
import {
  type CamelCased,
  camelCased,
  credential,
  flag,
  httpUrl,
  type SettingProblem,
  text,
  wholeNumber,
} from "../../settings/values.ts";
import type { FieldsOf } from "../kind.ts";

/** Sluice sets these itself, or they belong to one connection and are never forwarded. */
const reservedHeaders: ReadonlySet<string> = new Set([
  "accept-encoding",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "expect",
  "host",
  "keep-alive",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

const headersSchema = z
  .record(
    z
      .string()
      .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, "must be the name of a header")
      .refine(
        (name) => !reservedHeaders.has(name.toLowerCase()),
        "must not be a header that Sluice sets itself",
      ),
    z
      .string()
      .regex(/^[\x20-\x7e\t]*$/, "must be printable ASCII without line ends")
      .meta({ title: "secret" }),
  )
  .refine((headers) => hasDistinctNames(Object.keys(headers)), {
    error: "must not name a header twice; upper and lower case are the same",
  })
  .prefault({})
  .describe("Headers added to every request.");

function hasDistinctNames(names: readonly string[]): boolean {
  return new Set(names.map((name) => name.toLowerCase())).size === names.length;
}

/** The keys of an upstream of this kind in the file. */
export const fields = {
  base_url: httpUrl("Address of the API, with its version path, such as `/v1`.").refine(
    (url) => !/\/(chat\/completions|completions|embeddings|responses|models)$/.test(url),
    "must end before the endpoint, usually in /v1: /chat/completions and /embeddings are added",
  ),
  api_key: credential("Credential for the upstream. By default none is sent.").optional(),
  api_key_header: z
    .enum(["authorization", "api-key"])
    .prefault("authorization")
    .describe("Header of the credential: `authorization` (as Bearer) or `api-key` (Azure)."),
  headers: headersSchema,
  query: z
    .record(text("Name."), z.string().meta({ title: "secret" }))
    .prefault({})
    .describe("Query parameters added to every request."),
  forward_fields: z
    .array(text("Name."))
    .max(100)
    .prefault([])
    .describe(
      "Request fields forwarded in addition to those of OpenAI's public API, at the top " +
        "level, in messages and in their parts. Plans do not limit their effect: do not list " +
        "fields that choose models, addresses or credentials, or extend the output.",
    ),
  drop_fields: z
    .array(text("Name."))
    .max(100)
    .prefault([])
    .describe("Request fields that are never sent to this upstream."),
  max_tokens_field: z
    .enum(["max_tokens", "max_completion_tokens", "as_sent"])
    .prefault("as_sent")
    .describe("Name of the field for the output cap."),
  instruction_role: z
    .enum(["system", "developer", "as_sent"])
    .prefault("as_sent")
    .describe("Role of instruction messages. `as_sent`: of chat callers, and `system` of others."),
  flatten_text_parts: flag(false).describe(
    "Joins content parts into one text if all are text, for servers without support for " +
      "parts.",
  ),
  stream_usage: flag(true).describe(
    "Requests usage of streams with `stream_options.include_usage`.",
  ),
  takes_token_ids: flag(true).describe("Whether embedding inputs may be token ids."),
  embedding_batch_limit: wholeNumber(2048, [1, 100_000]).describe(
    "Maximum inputs per embedding request.",
  ),
  embedding_encoding: z
    .enum(["auto", "as_sent", "float", "base64"])
    .prefault("auto")
    .describe(
      "Encoding requested for embedding vectors. `auto`: base64, which is several times smaller " +
        "and faster; a server that refuses it is asked again without. Callers get the encoding " +
        "that they asked for.",
    ),
};

type Fields = FieldsOf<typeof fields>;

export function contradictions(upstream: Fields): readonly SettingProblem[] {
  if (upstream.api_key === undefined) return [];
  const message = "must not be set together with api_key, which uses the same header";
  return Object.keys(upstream.headers)
    .filter((name) => name.toLowerCase() === upstream.api_key_header)
    .map((name) => ({ path: ["headers", name], message }));
}

/** How one OpenAI-compatible server is reached, and where it deviates from OpenAI. */
export type OpenAiSettings = CamelCased<Fields>;

export function buildSettings(upstream: Fields): OpenAiSettings {
  const headers = Object.entries(upstream.headers).map(
    ([name, value]) => [name.toLowerCase(), value] as const,
  );
  return camelCased({ ...upstream, headers: Object.fromEntries(headers) });
}

import { z } from "zod";
import {
  type CamelCased,
  camelCased,
  credential,
  flag,
  httpUrl,
  requiredFlag,
  requiredWholeNumber,
  type SettingProblem,
  text,
} from "../../settings/values.ts";
import { type Quirk, quirkNames, quirks } from "../../wires/chat/quirks.ts";
import type { FieldsOf, FileTarget } from "../kind.ts";
import { type Profile, profileNames, profiles, usual } from "./profiles.ts";

/** Sluice sets these itself, or they belong to one connection and are never forwarded. */
const reservedHeaders: ReadonlySet<string> = new Set(
  (
    "accept-encoding connection content-encoding content-length content-type expect host keep-alive " +
    "proxy-authorization te trailer transfer-encoding upgrade"
  ).split(" "),
);

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

function usually(key: keyof typeof usual): string {
  return `Default: the profile's, else \`${usual[key]}\`.`;
}

/** Entra's own hosts. The secret of an application goes to no other, but to a simulator on this machine. */
const authorities: ReadonlySet<string> = new Set([
  "https://login.microsoftonline.com",
  "https://login.microsoftonline.us",
  "https://login.chinacloudapi.cn",
  "https://login.partner.microsoftonline.cn",
]);
const loopback = /^http:\/\/(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?$/;

const tenant = z.string().regex(/^[\w.-]{1,253}$/, "must be the id or the domain of a tenant");

const entraSchema = z
  .strictObject({
    tenant_id: tenant.describe("Id of the tenant."),
    client_id: text("Id of the application."),
    client_secret: credential("Value of the application's secret."),
    scope: text("What tokens are for.").prefault("https://cognitiveservices.azure.com/.default"),
    authority: httpUrl("Address of Entra in the cloud of the tenant.")
      .refine(
        (url) => authorities.has(url) || loopback.test(url),
        `must be one of: ${[...authorities].join(", ")}`,
      )
      .prefault("https://login.microsoftonline.com"),
  })
  .transform(camelCased)
  .optional()
  .describe("Tokens of Microsoft Entra instead of `api_key`.");

export type EntraSettings = NonNullable<z.output<typeof entraSchema>>;

/** The keys of an upstream of this kind in the file. */
export const fields = {
  profile: z
    .enum(profileNames)
    .optional()
    .describe(
      "The server: sets the keys and quirks in which it differs. Keys in the file replace " +
        "those of the profile; lists are added to them.",
    ),
  quirks: z
    .array(z.enum(quirkNames))
    .max(100)
    .prefault([])
    .describe(
      Object.entries(quirks)
        .map(([name, about]) => `\`${name}\`: ${about}`)
        .join(" "),
    ),
  base_url: httpUrl(
    "Address of the API, with its version path, such as `/v1`. Required unless the profile has one.",
  )
    .refine(
      (url) => !/\/(chat\/completions|completions|embeddings|responses|models)$/.test(url),
      "must end before the endpoint, usually in /v1: /chat/completions and /embeddings are added",
    )
    .optional(),
  api_key: credential("Credential. Default: none is sent.").optional(),
  api_key_header: z
    .enum(["authorization", "api-key"])
    .optional()
    .describe(
      `Header of the credential: \`authorization\` (as Bearer) or \`api-key\` (Azure). ${usually("api_key_header")}`,
    ),
  entra: entraSchema,
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
      "Fields forwarded besides those of OpenAI's API, at the top level, in messages and " +
        "their parts. List none that choose models, addresses or credentials, or extend the " +
        "output.",
    ),
  drop_fields: z
    .array(text("Name."))
    .max(100)
    .prefault([])
    .describe("Request fields that are never sent."),
  max_tokens_field: z
    .enum(["max_tokens", "max_completion_tokens", "as_sent"])
    .optional()
    .describe(`Name of the field for the output cap. ${usually("max_tokens_field")}`),
  instruction_role: z
    .enum(["system", "developer", "as_sent"])
    .optional()
    .describe(
      "Role of instruction messages. `as_sent`: of chat callers, and `system` of others. " +
        usually("instruction_role"),
    ),
  flatten_text_parts: flag(false).describe(
    "Joins content parts that are all text into one, for servers without parts.",
  ),
  stream_usage: flag(true).describe(
    "Asks for usage of streams with `stream_options.include_usage`.",
  ),
  session_cache_key: requiredFlag()
    .optional()
    .describe(
      "Sends calls that name a session, and no cache, with a `prompt_cache_key`. Default: " +
        "true at api.openai.com and in the profile `azure`.",
    ),
  takes_token_ids: requiredFlag()
    .optional()
    .describe(`Whether embedding inputs may be token ids. ${usually("takes_token_ids")}`),
  embedding_batch_limit: requiredWholeNumber([1, 100_000])
    .optional()
    .describe(`Maximum inputs per embedding request. ${usually("embedding_batch_limit")}`),
  embedding_encoding: z
    .enum(["auto", "as_sent", "float", "base64"])
    .prefault("auto")
    .describe(
      "Encoding requested for vectors. `auto`: base64, which is faster, unless the server " +
        "refuses it.",
    ),
};

type Fields = FieldsOf<typeof fields>;

export function contradictions(upstream: Fields): readonly SettingProblem[] {
  const { base_url: address, api_key_header: header } = knownOf(upstream);
  const problems: SettingProblem[] = [];
  if (address === undefined) {
    const message = "must be set unless the profile has an address of its own";
    problems.push({ path: ["base_url"], message });
  }
  const { api_key: key, entra } = upstream;
  if (key !== undefined && entra !== undefined) {
    problems.push({ path: ["entra"], message: "must not be set together with api_key" });
  }
  const used = entra === undefined ? key && header : "authorization";
  for (const name of Object.keys(upstream.headers)) {
    if (name.toLowerCase() !== used) continue;
    const setting = entra === undefined ? "api_key" : "entra";
    const message = `must not be set together with ${setting}, which uses the same header`;
    problems.push({ path: ["headers", name], message });
  }
  return problems;
}

function profileOf({ profile }: Fields): Profile {
  return profile === undefined ? {} : profiles[profile];
}

/** What the file, else its profile, else usage says. */
function knownOf(upstream: Fields) {
  const own = profileOf(upstream);
  const profile = { ...usual, ...own };
  const address = upstream.base_url ?? profile.base_url;
  const isOpenAi = address !== undefined && URL.parse(address)?.hostname === "api.openai.com";
  return {
    base_url: address,
    session_cache_key: upstream.session_cache_key ?? own.session_cache_key ?? isOpenAi,
    api_key_header: upstream.api_key_header ?? profile.api_key_header,
    max_tokens_field: upstream.max_tokens_field ?? profile.max_tokens_field,
    instruction_role: upstream.instruction_role ?? profile.instruction_role,
    takes_token_ids: upstream.takes_token_ids ?? profile.takes_token_ids,
    embedding_batch_limit: upstream.embedding_batch_limit ?? profile.embedding_batch_limit,
  };
}

type Known = ReturnType<typeof knownOf> & {
  readonly base_url: string;
  readonly quirks: ReadonlySet<Quirk>;
};

/** How one OpenAI-compatible server is reached, and where it deviates from OpenAI. */
export type OpenAiSettings = CamelCased<Omit<Fields, keyof Known | "profile"> & Known>;

/** Lists of the file are added to those of its profile. */
export function buildSettings(upstream: Fields): OpenAiSettings {
  const profile = profileOf(upstream);
  const known = knownOf(upstream);
  const headers = Object.entries(upstream.headers).map(
    ([name, value]) => [name.toLowerCase(), value] as const,
  );
  return camelCased({
    ...upstream,
    ...known,
    base_url: known.base_url ?? "",
    headers: Object.fromEntries(headers),
    forward_fields: [...(profile.forward_fields ?? []), ...upstream.forward_fields],
    drop_fields: [...(profile.drop_fields ?? []), ...upstream.drop_fields],
    quirks: new Set([...(profile.quirks ?? []), ...upstream.quirks]),
  });
}

/** The section of a target of kind `openai` for its model. */
export const targetSections = {
  chat: z
    .strictObject({
      api: z
        .enum(["chat", "responses"])
        .prefault("chat")
        .describe("Completions, or OpenAI's Responses."),
    })
    .optional(),
  embedding: z.strictObject({}).optional(),
};

/** The targets that are called by Responses, as `targetKey` names them. */
export function responsesTargets(
  targets: readonly FileTarget<typeof targetSections>[],
): ReadonlySet<string> {
  return new Set(
    targets.flatMap(({ alias, model, kind, section }) =>
      kind === "chat" && section?.api === "responses" ? [targetKey(alias, model)] : [],
    ),
  );
}

export const targetKey = (alias: string, model: string): string => `${alias} ${model}`;

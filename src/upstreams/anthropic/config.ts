import { z } from "zod";
import {
  type CamelCased,
  camelCased,
  credential,
  flag,
  httpUrl,
  requiredWholeNumber,
  type SettingProblem,
  text,
} from "../../settings/values.ts";
import type { BuiltUpstream, FieldsOf, FileUpstream } from "../kind.ts";
import { repairFields } from "../shared/config.ts";
import { type AnthropicModelSettings, claudeFamilies, usualSettings } from "./models.ts";

const names = (about: string) => z.array(text("Name.")).max(100).prefault([]).describe(about);

/** The keys of an upstream of this kind in the file. */
export const fields = {
  base_url: httpUrl("Address of the API, without `/v1`.")
    .refine(
      (url) => !/\/(v1|messages)$/.test(url),
      "must end before the version: /v1/messages is added",
    )
    .prefault("https://api.anthropic.com"),
  api_key: credential(
    "Sent as `x-api-key`. Tokens of subscriptions (`sk-ant-oat...`) are refused.",
  ),
  forward_fields: names(
    "Fields of requests, blocks and tools, and types of blocks, that callers of the " +
      "Messages API may send besides those that Sluice knows.",
  ),
  forward_betas: names("Values of `anthropic-beta` that callers of the Messages API may send."),
  betas: names("Values of `anthropic-beta` that every request gets."),
  count_tokens: flag(true).describe("Counts tokens with `/v1/messages/count_tokens`."),
};

type Fields = FieldsOf<typeof fields>;

/** Subscriptions are for the provider's own clients; its terms forbid others to use them. */
export function contradictions({ api_key: key }: Fields): readonly SettingProblem[] {
  if (!key.reveal().startsWith("sk-ant-oat")) return [];
  const message =
    "must be an API key of the Claude Console: tokens of a subscription (sk-ant-oat...) are for " +
    "Anthropic's own clients only";
  return [{ path: ["api_key"], message }];
}

/** The section of a target of this kind. Its provider has no embeddings. */
export const targetSections = {
  chat: z
    .strictObject({
      family: z.enum(claudeFamilies).optional().meta({
        title: "family",
        description: "Default: derived from `model`, unless that is a name of your own.",
      }),
      default_output_tokens: requiredWholeNumber([1, 100_000_000])
        .describe("Output cap for calls without one. Default: the model's maximum.")
        .optional(),
      ...repairFields,
    })
    .optional(),
  embedding: z.strictObject({}).optional(),
};

/** The keys of the file, and the targets' models by alias, then by the provider's identifier. */
export interface AnthropicSettings extends CamelCased<Fields> {
  readonly models: ReadonlyMap<string, ReadonlyMap<string, AnthropicModelSettings>>;
}

export function buildUpstream({
  name,
  fields: written,
  targets,
}: FileUpstream<
  typeof fields,
  typeof targetSections
>): readonly BuiltUpstream<AnthropicSettings>[] {
  const models = new Map<string, Map<string, AnthropicModelSettings>>();
  for (const target of targets) {
    if (target.kind !== "chat") continue;
    const { alias, model, section, maxOutputTokens } = target;
    const own = models.get(alias) ?? new Map<string, AnthropicModelSettings>();
    models.set(alias, own);
    own.set(model, { ...usualSettings, ...camelCased(section ?? {}), maxOutputTokens });
  }
  return [{ name, settings: { ...camelCased(written), models } }];
}

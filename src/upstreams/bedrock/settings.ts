import type { Secret } from "../../domain/keys/secret.ts";
import { type CamelCased, camelCased } from "../../settings/values.ts";
import type { AssumedRole } from "./config/assumed-role.ts";
import { emptySections } from "./config/target-sections.ts";
import type { Api, Service } from "./models/apis.ts";
import type { FamilyFacts } from "./config/capabilities.ts";

/** How one region of the provider is reached, and the settings of the models called there. */
export interface BedrockSettings {
  readonly region: string;
  /** Replaces the address derived from the region; without a slash at the end. */
  readonly endpoint: string | undefined;
  /** Which of the region's addresses. */
  readonly service: Service;
  /** Whether the address derived from the region is the FIPS one. */
  readonly useFips: boolean;
  readonly credentials: BedrockCredentials;
  /**
   * Whether tokens may be counted without an answer, for which the provider has a separate
   * permission.
   */
  readonly countsTokens: boolean;
  /** The operator's own families of models, by name. */
  readonly families: Readonly<Record<string, FamilyFacts>>;
  /** By alias, then by the provider's identifier; targets without settings are missing. */
  readonly models: ReadonlyMap<string, ReadonlyMap<string, BedrockModelSettings>>;
}

export type BedrockCredentials =
  | { readonly source: "bearer"; readonly apiKey: Secret }
  | {
      readonly source: "static";
      readonly accessKeyId: string;
      readonly secretAccessKey: Secret;
      readonly sessionToken: Secret | undefined;
      readonly assumedRole?: AssumedRole | undefined;
    }
  /** Environment, profile, web identity, container or instance, whichever comes first. */
  | {
      readonly source: "chain";
      readonly profile: string | undefined;
      readonly assumedRole?: AssumedRole | undefined;
    };

/** The operator's settings of one model at one target, with those of both kinds of models. */
export interface BedrockModelSettings
  extends Omit<SettingsOf<"chat">, "api">, SettingsOf<"embedding"> {
  readonly api: Api;
  /** Undefined: read from the identifier, which an ARN does not allow. */
  readonly family: string | undefined;
  /** The identifier of the model behind one that hides it, such as an application profile's. */
  readonly baseModel?: string | undefined;
  /** The alias' own limit of one answer; the model's may be lower. */
  readonly maxOutputTokens: number | undefined;
}

type SettingsOf<Kind extends keyof typeof emptySections> = Omit<
  CamelCased<(typeof emptySections)[Kind]>,
  "family"
>;

/** For a target that has only an identifier. */
export const defaultModelSettings: BedrockModelSettings = {
  ...camelCased(emptySections.chat),
  ...camelCased(emptySections.embedding),
  api: "converse",
  family: undefined,
  maxOutputTokens: undefined,
};

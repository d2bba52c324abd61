import type { Secret } from "../../domain/keys/secret.ts";
import type { Capabilities } from "./config/capabilities.ts";
import type { ModelFamily } from "./models/facts.ts";

/** How one region of the provider is reached, and the settings of the models called there. */
export interface BedrockSettings {
  readonly region: string;
  /** Replaces the address derived from the region; without a slash at the end. */
  readonly endpoint: string | undefined;
  /** Whether the address derived from the region is the FIPS one. */
  readonly useFips: boolean;
  readonly credentials: BedrockCredentials;
  /**
   * Whether tokens may be counted without an answer, for which the provider has a separate
   * permission.
   */
  readonly countsTokens: boolean;
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

/** A role that the credentials beside it assume. */
export interface AssumedRole {
  readonly roleArn: string;
  readonly externalId: string | undefined;
  readonly sessionName: string;
  readonly sessionTags: Readonly<Record<string, string>>;
  /** Validity of one set of credentials; undefined: the provider's default. */
  readonly durationMs: number | undefined;
}

/** The purposes of embeddings, in Cohere's terms. */
export const inputTypes = [
  "search_document",
  "search_query",
  "classification",
  "clustering",
] as const;
export type InputType = (typeof inputTypes)[number];

/** The operator's settings of one model at one target. */
export interface BedrockModelSettings {
  /** Undefined: read from the identifier, which an ARN does not allow. */
  readonly family: ModelFamily | undefined;
  /** The identifier of the model behind one that hides it, such as an application profile's. */
  readonly baseModel?: string | undefined;
  /** The alias' own limit of one answer; the model's may be lower. */
  readonly maxOutputTokens: number | undefined;
  /** The cap of answers whose caller sets none; undefined: as much as the model can write. */
  readonly defaultOutputTokens: number | undefined;
  /** Differences from the family's capabilities. */
  readonly capabilities: Partial<Capabilities>;
  /** Drops fields that the model cannot honour, where callers would otherwise get 400. */
  readonly dropUnsupported: boolean;
  /** Whether conversations whose turns the provider would refuse are completed. */
  readonly conversation: "repair" | "strict";
  /** Whether cache points are added for callers that send none. */
  readonly promptCache: "auto" | "as_sent";
  /** Refuses answers without the form that `response_format` requires. */
  readonly validateAnswers: boolean;
  readonly guardrail: Guardrail | undefined;
  /** At most 16 pairs, for the provider's invocation logs. */
  readonly requestMetadata: Readonly<Record<string, string>>;
  readonly serviceTier: ServiceTier | undefined;
  readonly latency: "standard" | "optimized" | undefined;
  /** Merged into `additionalModelRequestFields`. */
  readonly additionalFields: Readonly<Record<string, unknown>>;
  /** The purpose of embeddings if the caller sets none, for Cohere's and Nova's models. */
  readonly inputType: InputType;
  /** Whether Cohere's and Nova's embedding models truncate inputs that are too long. */
  readonly truncate: "none" | "start" | "end";
}

/** For a target that has only an identifier. */
export const defaultModelSettings: BedrockModelSettings = {
  family: undefined,
  maxOutputTokens: undefined,
  defaultOutputTokens: undefined,
  capabilities: {},
  dropUnsupported: false,
  conversation: "repair",
  promptCache: "as_sent",
  validateAnswers: false,
  guardrail: undefined,
  requestMetadata: {},
  serviceTier: undefined,
  latency: undefined,
  additionalFields: {},
  inputType: "search_document",
  truncate: "none",
};

export type ServiceTier = "default" | "flex" | "priority" | "reserved";

export interface Guardrail {
  readonly identifier: string;
  /** A number, or `DRAFT`. */
  readonly version: string;
  readonly trace: "enabled" | "disabled" | "enabled_full";
  /** Whether a stream waits for the guardrail. */
  readonly streamProcessing: "sync" | "async";
}

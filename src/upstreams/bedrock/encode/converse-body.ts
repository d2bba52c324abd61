import type { ImageFormat } from "../../../domain/chat/data-url.ts";
import documentFormats from "./document-formats.json" with { type: "json" };
import type { InferenceConfig } from "../../shared/inference.ts";
import type { WireTurn } from "../../../wires/block-writer.ts";
import type { JsonObject } from "../../../domain/json-fields.ts";

/**
 * The body of Converse and ConverseStream, as far as it is used here. Names are those of the wire.
 */
export interface ConverseBody {
  readonly messages: readonly Turn[];
  readonly system?: readonly ContentBlock[];
  readonly inferenceConfig: InferenceConfig;
  readonly toolConfig?: ToolConfig;
  readonly guardrailConfig?: GuardrailConfig;
  readonly additionalModelRequestFields?: JsonObject;
  /** JSON pointers into the model's own answer, to fields that Converse should repeat. */
  readonly additionalModelResponseFieldPaths?: readonly string[];
  readonly requestMetadata?: Readonly<Record<string, string>>;
  readonly performanceConfig?: { readonly latency: "standard" | "optimized" };
  readonly serviceTier?: { readonly type: string };
  readonly outputConfig?: { readonly textFormat: TextFormat };
}

export type Turn = WireTurn<ContentBlock>;

export interface TextBlock {
  readonly text: string;
}

export interface CachePoint {
  /** Without a `ttl` it lasts five minutes. */
  readonly cachePoint: { readonly type: "default"; readonly ttl?: "1h" };
}

export interface ToolUseBlock {
  readonly toolUse: {
    readonly toolUseId: string;
    readonly name: string;
    readonly input: JsonObject;
  };
}

export interface ToolResultBlock {
  readonly toolResult: {
    readonly toolUseId: string;
    readonly content: readonly ResultBlock[];
    readonly status?: "error";
  };
}

export interface ImageBlock {
  readonly image: { readonly format: ImageFormat; readonly source: { readonly bytes: string } };
}

export interface DocumentBlock {
  readonly document: {
    readonly name: string;
    readonly format: DocumentFormat;
    readonly source: { readonly bytes: string };
  };
}

/** Thoughts of the model, as it signed or hid them. */
export interface ReasoningContentBlock {
  readonly reasoningContent:
    | { readonly reasoningText: { readonly text: string; readonly signature: string } }
    /** Base64. */
    | { readonly redactedContent: string };
}

/** The content of a tool result. */
export type ResultBlock = TextBlock | ImageBlock | DocumentBlock;

export type ContentBlock =
  | TextBlock
  | CachePoint
  | ToolUseBlock
  | ToolResultBlock
  | ImageBlock
  | DocumentBlock
  | ReasoningContentBlock;

/** With the media types and extensions of files by which they are known. */
export { documentFormats };
export type DocumentFormat = keyof typeof documentFormats;

export interface ToolConfig {
  readonly tools: readonly ToolEntry[];
  readonly toolChoice?: WireToolChoice;
}

export type ToolEntry = ToolSpec | CachePoint;

export interface ToolSpec {
  readonly toolSpec: {
    readonly name: string;
    readonly description?: string;
    readonly inputSchema: { readonly json: JsonObject };
    readonly strict?: true;
  };
}

export type WireToolChoice =
  { readonly any: Readonly<Record<string, never>> } | { readonly tool: { readonly name: string } };

export interface GuardrailConfig {
  readonly guardrailIdentifier: string;
  readonly guardrailVersion: string;
  readonly trace: "enabled" | "disabled" | "enabled_full";
  readonly streamProcessingMode?: "sync" | "async";
}

export interface TextFormat {
  readonly type: "json_schema";
  readonly structure: {
    readonly jsonSchema: {
      /** JSON text, not an object. */
      readonly schema: string;
      readonly name: string;
      readonly description?: string;
    };
  };
}

export const cachePoint: CachePoint = { cachePoint: { type: "default" } };

import type { Secret } from "../../domain/keys/secret.ts";

/** How one OpenAI-compatible server is reached, and where it deviates from OpenAI. */
export interface OpenAiSettings {
  /** Up to and including `/v1` or the server's equivalent, without a slash at the end. */
  readonly baseUrl: string;
  readonly apiKey: Secret | undefined;
  readonly apiKeyHeader: "authorization" | "api-key";
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  /** Fields of a caller that are sent to this server beyond those of OpenAI's API. */
  readonly forwardFields: readonly string[];
  /** Request fields that this server does not accept. */
  readonly dropFields: readonly string[];
  readonly maxTokensField: "max_tokens" | "max_completion_tokens" | "as_sent";
  readonly instructionRole: "system" | "developer" | "as_sent";
  /**
   * Joins content that consists of text parts into one string, for servers that accept only
   * strings.
   */
  readonly flattenTextParts: boolean;
  /** Whether the server accepts `stream_options.include_usage`. */
  readonly streamUsage: boolean;
  readonly takesTokenIds: boolean;
  readonly embeddingBatchLimit: number;
  /**
   * The encoding to request; any answer is transcoded for the caller. `auto`: base64, and of servers
   * that refuse it none.
   */
  readonly embeddingEncoding: "auto" | "as_sent" | "float" | "base64";
}

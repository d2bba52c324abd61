import { GatewayError } from "../domain/gateway-error.ts";

/**
 * Text of token ids. LangChain's Python client sends `cl100k_base` ids to any embeddings server;
 * only OpenAI's own models read those, so others get the text. The table is large and rarely
 * needed, hence loaded on first use.
 */
export async function decodeTokens(tokens: readonly number[]): Promise<string> {
  const { decode } = await import("gpt-tokenizer/encoding/cl100k_base");
  try {
    return decode(tokens);
  } catch (error) {
    throw new GatewayError("invalid_body", {
      message:
        "'$.input' is invalid: it has token ids that the cl100k_base encoding does not have.",
      param: "input",
      cause: error,
    });
  }
}

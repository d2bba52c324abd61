import { bearer } from "../domain/keys/credential-form.ts";
import type { Dialect } from "../edge/dialect.ts";
import { ownError } from "../edge/replies/error-reply.ts";

export const openAi: Dialect = {
  credential: bearer,
  endpoints: { chat: "/v1/chat/completions", embedding: "/v1/embeddings", list: "/v1/models" },
  error: ownError,
  // OpenAI sends no `[DONE]` after an error.
  errorFrame: (error) => `data: ${JSON.stringify(error.toBody())}\n\n`,
};

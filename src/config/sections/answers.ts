import { z } from "zod";
import { size, wholeNumber } from "../../settings/values.ts";

export const answersSchema = z
  .strictObject({
    chat_limit: size({
      about: "Largest non-streamed answer of a chat model; a larger one is 400 `answer_too_large`.",
      min: "1MiB",
      max: "1GiB",
      initial: "32MiB",
    }),
    chat_values: wholeNumber({
      about:
        "Maximum number of values in such an answer, weighted like `http.json_values`. 4,000 " +
        "tokens with 20 alternatives each make about 6,000,000.",
      min: 100_000,
      max: 1_000_000_000,
      initial: 8_000_000,
    }),
    embedding_limit: size({
      about:
        "Largest answer of an embedding model. 2,048 vectors of 4,096 numbers take up to 190 MiB.",
      min: "1MiB",
      max: "1GiB",
      initial: "256MiB",
    }),
  })
  .prefault({})
  .describe("Non-streamed answers of upstreams.")
  .transform((answers) => ({
    chatLimitBytes: answers.chat_limit,
    chatValues: answers.chat_values,
    embeddingLimitBytes: answers.embedding_limit,
  }));

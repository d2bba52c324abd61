import { z } from "zod";
import { size } from "./values.ts";

export const answersSchema = z
  .strictObject({
    chat_limit: size({
      about: "Largest answer of a chat model that is read whole; a larger one counts as broken.",
      min: "1MiB",
      max: "1GiB",
      initial: "32MiB",
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
  .describe("Answers of upstreams that are read whole, not as streams.");

import { z } from "zod";

/** Headers of the transport, the credential and the body, which have another meaning. */
const reserved =
  /^(?:host|connection|content-.*|transfer-encoding|te|upgrade|accept.*|authorization|cookie|api-key|x-api-key|idempotency-key|x-amz.*|x-sluice.*)$/;

/** A header whose meaning the operator decides. */
export const ownHeader = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,62}$/, "must be the name of a header, in lower case")
  .refine((name) => !reserved.test(name), "must not be a header with another meaning");

export const hooksSchema = z
  .strictObject({
    call_tag: z
      .strictObject({
        header: ownHeader.describe(
          "Header whose value is sent to the upstream and logged as `call tagged`.",
        ),
      })
      .optional()
      .describe("Tags calls by a header, such as `x-team`. Default: calls are not tagged."),
  })
  .prefault({})
  .describe("Extensions of calls. None run unless configured here.")
  .transform((hooks) => ({ callTagHeader: hooks.call_tag?.header }));

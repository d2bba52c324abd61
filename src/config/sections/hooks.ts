import { z } from "zod";

/** Headers of the transport, the credential and the body, which a tag must not replace. */
const reserved =
  /^(?:host|connection|content-.*|transfer-encoding|te|upgrade|accept.*|authorization|cookie|api-key|x-api-key|idempotency-key|x-amz.*|x-sluice.*)$/;

export const hooksSchema = z
  .strictObject({
    call_tag: z
      .strictObject({
        header: z
          .string()
          .regex(/^[a-z][a-z0-9-]{0,62}$/, "must be the name of a header, in lower case")
          .refine((name) => !reserved.test(name), "must not be a header with another meaning")
          .describe(
            "Header of the caller whose value tags the call: 1 to 64 letters, digits or any of " +
              "`. _ : / -`. It goes to the upstream under the same name, and is logged as `call tagged` " +
              "with what the call used.",
          ),
      })
      .optional()
      .describe("Tags calls by a header, such as `x-team`. Default: calls are not tagged."),
  })
  .prefault({})
  .describe("What follows every call. None unless it is configured here.")
  .transform((hooks) => ({ callTagHeader: hooks.call_tag?.header }));

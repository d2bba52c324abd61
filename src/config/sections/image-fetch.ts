import { z } from "zod";
import type { ImageFetchSettings } from "../../domain/upstream-settings.ts";
import { duration, flag, size, wholeNumber } from "../../settings/values.ts";

/** Images that callers name by address make the gateway, or a model's server, send requests. */

const hostProblem = "must be a host name without port, such as images.example.com";

export const imageFetchSchema = z
  .strictObject({
    enabled: flag(
      "Reads http(s) addresses of images for models that take only the images themselves. " +
        "Without it such requests are refused.",
      false,
    ),
    max_bytes: size({
      about: "Largest image.",
      min: "1KiB",
      max: "100MiB",
      initial: "10MiB",
    }),
    timeout: duration({
      about:
        "How long one image may take to arrive, and the hosts of images that a model reads itself " +
        "to be looked up.",
      min: "100ms",
      max: "1m",
      initial: "5s",
    }),
    max_images: wholeNumber({
      about:
        "Most images read for one request, and most hosts of images that a model reads itself.",
      min: 1,
      max: 100,
      initial: 16,
    }),
    allowed_hosts: z
      .array(
        z
          .string()
          .regex(/^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_][A-Za-z0-9._-]{0,252})$/, hostProblem)
          .transform((host) => host.toLowerCase()),
      )
      .max(1000)
      .prefault([])
      .describe(
        "Hosts that images may come from, exactly, without port; `[]` is any host. Named hosts may " +
          "use any port, others 80 and 443. Holds for images that a model reads itself as well.",
      ),
    allow_private: flag(
      "Whether images may come from loopback and private addresses. Callers then reach what the " +
        "gateway's network, or that of a model's server, reaches; link-local and metadata " +
        "addresses stay refused.",
      false,
    ),
  })
  .prefault({})
  .describe("Reading images by address.")
  .transform((images): ImageFetchSettings => ({
    enabled: images.enabled,
    maxBytes: images.max_bytes,
    timeoutMs: images.timeout,
    maxImages: images.max_images,
    allowedHosts: images.allowed_hosts,
    allowsPrivateAddresses: images.allow_private,
  }));

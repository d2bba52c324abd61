import { z } from "zod";
import type { ImageFetchSettings } from "../../domain/upstream-settings.ts";
import { duration, flag, hostName, size, wholeNumber } from "../../settings/values.ts";

/**
 * Images that requests give as a URL, for which the gateway or a model's server sends requests.
 */

const hostProblem = "must be a host name without port, such as images.example.com";

export const imageFetchSchema = z
  .strictObject({
    enabled: flag(false).describe(
      "Fetches image URLs for models that accept only data. Otherwise such requests are " +
        "refused.",
    ),
    max_bytes: size("10MiB", ["1KiB", "100MiB"]).describe("Largest image."),
    timeout: duration("5s", ["100ms", "1m"]).describe(
      "Longest time to fetch one image, or to resolve the host of one that a model fetches " +
        "itself.",
    ),
    max_images: wholeNumber(16, [1, 100]).describe(
      "Maximum images fetched per request, and hosts of images that a model fetches itself.",
    ),
    allowed_hosts: z
      .array(hostName(hostProblem))
      .max(1000)
      .prefault([])
      .describe(
        "Hosts, without port, that images may come from, also if a model fetches them itself; " +
          "`[]` is any. Listed hosts may use any port, others 80 and 443.",
      ),
    allow_private: flag(false).describe(
      "Allows loopback and private addresses: callers then reach the network of the gateway " +
        "or of a model's server. Link-local and metadata addresses are always refused.",
    ),
  })
  .prefault({})
  .describe("Fetching images by URL.")
  .transform((images): ImageFetchSettings => ({
    enabled: images.enabled,
    maxBytes: images.max_bytes,
    timeoutMs: images.timeout,
    maxImages: images.max_images,
    allowedHosts: images.allowed_hosts,
    allowsPrivateAddresses: images.allow_private,
  }));

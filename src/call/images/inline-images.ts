import type { ImageFetchSettings } from "../../domain/upstream-settings.ts";
import type { ChatMessage, Conversation, ContentPart } from "../../domain/chat/conversation.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import { fetchImage, type ImageFetch } from "./fetch-image.ts";
import { ImageFailure } from "./image-address.ts";
import { inParallel } from "../in-parallel.ts";

/** Limit on parallel image fetches of one call. */
const imagesAtOnce = 4;

/**
 * Fetches images and returns their data URLs by URL. `params` names the field of each URL. Throws
 * `GatewayError` for an image that cannot be read.
 */
export async function readImages(
  params: ReadonlyMap<string, string>,
  fetching: ImageFetch,
): Promise<ReadonlyMap<string, string>> {
  const addresses = [...params.keys()];
  const work = { count: addresses.length, limit: imagesAtOnce, signal: fetching.signal };
  const images = await inParallel(work, async (index, signal) => {
    const address = addresses[index] ?? "";
    try {
      return await fetchImage(address, { ...fetching, signal });
    } catch (error) {
      throw error instanceof ImageFailure ? unreadable(error, params.get(address)) : error;
    }
  });
  return new Map(addresses.map((address, index) => [address, images[index] ?? ""]));
}

/**
 * Throws `UpstreamFailure` `unsupported` if the operator has not enabled it, so that a target that
 * accepts URLs may still serve the call, and `GatewayError` for too many images.
 */
export function checkAllowed(
  params: ReadonlyMap<string, string>,
  { enabled, maxImages }: ImageFetchSettings,
): void {
  const [first] = params.values();
  if (first !== undefined && !enabled) throw notAllowed(first);
  if (params.size > maxImages) throw tooMany(maxImages);
}

/** Image URLs, each with the path of its first field. */
export function findAddresses({ messages }: Conversation): ReadonlyMap<string, string> {
  const params = new Map<string, string>();
  for (const [message, { content }] of messages.entries()) {
    if (content === undefined || content === null || typeof content === "string") continue;
    for (const [position, part] of content.entries()) {
      const address = addressOf(part);
      if (address === undefined || params.has(address)) continue;
      params.set(address, `messages[${message}].content[${position}].image_url.url`);
    }
  }
  return params;
}

function addressOf(part: ContentPart): string | undefined {
  if (part.type !== "image_url") return undefined;
  return /^https?:/i.test(part.image_url.url) ? part.image_url.url : undefined;
}

/** Replaces image URLs by the results of `dataUrlOf`. */
export function replaceAddresses(
  request: Conversation,
  dataUrlOf: (address: string) => string | undefined,
): Conversation {
  const messages = request.messages.map((message) => replaceIn(message, dataUrlOf));
  return { ...request, messages };
}

function replaceIn(
  message: ChatMessage,
  dataUrlOf: (address: string) => string | undefined,
): ChatMessage {
  const { content } = message;
  if (content === undefined || content === null || typeof content === "string") return message;
  const replaced = content.map((part) => {
    const address = addressOf(part);
    const dataUrl = address === undefined ? undefined : dataUrlOf(address);
    if (part.type !== "image_url" || dataUrl === undefined) return part;
    return { ...part, image_url: { ...part.image_url, url: dataUrl } };
  });
  return { ...message, content: replaced };
}

function notAllowed(param: string): UpstreamFailure {
  return new UpstreamFailure({
    kind: "unsupported",
    message:
      "This model accepts images only as data, not by URL. Send the image as a data URL " +
      "(data:image/png;base64,...), or ask the operator to enable image_fetch.",
    param,
  });
}

function tooMany(maxImages: number): GatewayError {
  return new GatewayError("invalid_image_url", {
    message:
      `This model accepts at most ${maxImages} image URLs in one request. ` +
      "Send the others as data URLs.",
    param: "messages",
  });
}

function unreadable(failure: ImageFailure, param: string | undefined): GatewayError {
  return new GatewayError("invalid_image_url", {
    message:
      `The image could not be read: ${failure.message}. ` +
      "Check its URL, or send it as a data URL.",
    param: param ?? null,
    cause: failure,
  });
}

import type { ChatMessage, ChatRequest, ContentPart } from "../domain/chat.ts";
import { GatewayError } from "../domain/gateway-error.ts";
import { UpstreamFailure } from "../domain/upstream-failure.ts";
import { fetchImage, type ImageFetch } from "./fetch-image.ts";
import { ImageFailure } from "./image-failure.ts";
import { inParallel } from "./in-parallel.ts";

/** Most images of one call that are read at once. */
const imagesAtOnce = 4;

/**
 * Puts data URLs in the place of the images' addresses, each of which is read once. Throws
 * `UpstreamFailure` `unsupported` where the operator has not allowed it, so that a target which
 * takes addresses may still serve the call, and `GatewayError` for an image that cannot be read.
 */
export async function inlineImages(
  request: ChatRequest,
  fetching: ImageFetch,
): Promise<ChatRequest> {
  const params = findAddresses(request);
  const addresses = [...params.keys()];
  const [first] = params.values();
  if (first === undefined) return request;
  const { enabled, maxImages } = fetching.settings;
  if (!enabled) throw notAllowed(first);
  if (addresses.length > maxImages) throw tooMany(maxImages);
  const work = { count: addresses.length, limit: imagesAtOnce, signal: fetching.signal };
  const images = await inParallel(work, async (index, signal) => {
    const address = addresses[index] ?? "";
    try {
      return await fetchImage(address, { ...fetching, signal });
    } catch (error) {
      throw error instanceof ImageFailure ? unreadable(error, params.get(address)) : error;
    }
  });
  const dataUrls = new Map(addresses.map((address, index) => [address, images[index] ?? ""]));
  const messages = request.messages.map((message) => replaceAddresses(message, dataUrls));
  return { ...request, messages };
}

/** Addresses of images, each with the path of the first field that holds it. */
function findAddresses({ messages }: ChatRequest): ReadonlyMap<string, string> {
  const params = new Map<string, string>();
  for (const [message, { content }] of messages.entries()) {
    if (content === undefined || content === null || typeof content === "string") continue;
    for (const [place, part] of content.entries()) {
      const address = addressOf(part);
      if (address === undefined || params.has(address)) continue;
      params.set(address, `messages[${message}].content[${place}].image_url.url`);
    }
  }
  return params;
}

function addressOf(part: ContentPart): string | undefined {
  if (part.type !== "image_url") return undefined;
  return /^https?:/i.test(part.image_url.url) ? part.image_url.url : undefined;
}

function replaceAddresses(
  message: ChatMessage,
  dataUrls: ReadonlyMap<string, string>,
): ChatMessage {
  const { content } = message;
  if (content === undefined || content === null || typeof content === "string") return message;
  const replaced = content.map((part) => {
    const dataUrl = part.type === "image_url" ? dataUrls.get(part.image_url.url) : undefined;
    if (part.type !== "image_url" || dataUrl === undefined) return part;
    return { ...part, image_url: { ...part.image_url, url: dataUrl } };
  });
  return { ...message, content: replaced };
}

function notAllowed(param: string): UpstreamFailure {
  return new UpstreamFailure({
    kind: "unsupported",
    message:
      "This model takes images only as data, not by address. Send the image as a data URL " +
      "(data:image/png;base64,...), or ask the operator to enable image_fetch.",
    param,
  });
}

function tooMany(maxImages: number): GatewayError {
  return new GatewayError("invalid_image_url", {
    message:
      `This model reads at most ${maxImages} images by address in one request. ` +
      "Send the others as data URLs.",
    param: "messages",
  });
}

function unreadable(failure: ImageFailure, param: string | undefined): GatewayError {
  return new GatewayError("invalid_image_url", {
    message:
      `The image could not be read: ${failure.message}. ` +
      "Check its address, or send it as a data URL.",
    param: param ?? null,
    cause: failure,
  });
}

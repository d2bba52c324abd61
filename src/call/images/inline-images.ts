import type { ImageFetchSettings } from "../../domain/upstream-settings.ts";
import {
  type Block,
  type Conversation,
  fieldOf,
  type ImageBlock,
  type Turn,
} from "../../domain/chat/conversation.ts";
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
  turnsField: string,
): void {
  const [first] = params.values();
  if (first !== undefined && !enabled) throw notAllowed(first);
  if (params.size > maxImages) throw tooMany(maxImages, turnsField);
}

/** Image URLs, also in results of tools, each with the path of the first field that has it. */
export function findAddresses(request: Conversation): ReadonlyMap<string, string> {
  const params = new Map<string, string>();
  const find = (block: Block): void => {
    if (block.type === "tool-result") block.content.forEach(find);
    if (block.type !== "image" || !isAddress(block) || params.has(block.url)) return;
    params.set(block.url, `${block.at}.${fieldOf(request, "imageUrl")}`);
  };
  for (const { blocks } of request.turns) for (const block of blocks) find(block);
  return params;
}

function isAddress({ url }: ImageBlock): boolean {
  return /^https?:/i.test(url);
}

type UrlOf = (address: string) => string | undefined;

/** Replaces image URLs by the results of `urlOf`. */
export function replaceAddresses(request: Conversation, urlOf: UrlOf): Conversation {
  const turns = request.turns.map((turn): Turn => {
    return { ...turn, blocks: turn.blocks.map((block) => replaceIn(block, urlOf)) };
  });
  return { ...request, turns };
}

function replaceIn<Kind extends Block>(block: Kind, urlOf: UrlOf): Kind {
  if (block.type === "tool-result") {
    return { ...block, content: block.content.map((part) => replaceIn(part, urlOf)) };
  }
  const url = block.type === "image" && isAddress(block) ? urlOf(block.url) : undefined;
  return url === undefined ? block : { ...block, url };
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

function tooMany(maxImages: number, param: string): GatewayError {
  return new GatewayError("invalid_image_url", {
    message:
      `This model accepts at most ${maxImages} image URLs in one request. ` +
      "Send the others as data URLs.",
    param,
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

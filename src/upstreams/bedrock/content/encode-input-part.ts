import type { ContentPart } from "../../../domain/chat/chat.ts";
import { isBlank } from "../encode/blank-text.ts";
import type { ResultBlock } from "../encode/converse-body.ts";
import { encodeDocument, type DocumentContext } from "./encode-document.ts";
import { encodeImage } from "./encode-image.ts";
import { unsupported } from "../failures/refusal.ts";

/**
 * One part of a user's or a tool's message; undefined if it is empty. `path` is the part's path.
 */
export function encodeInputPart(
  part: ContentPart,
  context: DocumentContext,
  path: string,
): ResultBlock | undefined {
  switch (part.type) {
    case "text":
      return isBlank(part.text) ? undefined : { text: part.text };
    case "refusal":
      return isBlank(part.refusal) ? undefined : { text: part.refusal };
    case "image_url":
      return encodeImage(part.image_url.url, context.model, path);
    case "file":
      return encodeDocument(part.file, context, path);
    case "input_audio":
      throw unsupported(path, `${path}: this model does not accept audio. Send a transcript.`);
  }
}

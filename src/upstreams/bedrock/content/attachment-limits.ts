import type { ContentBlock, Turn } from "../encode/converse-body.ts";
import { invalidRequest } from "../failures/refusal.ts";

/** The provider's limit for one turn. */
const mostDocuments = 5;

/**
 * Counts the attachments of one request as they are added, so that too many end the encoding early.
 */
export class AttachmentLimits {
  readonly #maxImages: number;
  #imageCount = 0;
  #turn: Turn | undefined;
  #documentCount = 0;

  constructor({ maxImages }: { readonly maxImages: number }) {
    this.#maxImages = maxImages;
  }

  /** Called with each block and its turn; `path` is the part's path. */
  count(block: ContentBlock, turn: Turn | undefined, path: string): void {
    if ("image" in block) this.#countImage(path);
    else if ("document" in block) this.#countDocument(turn, path);
  }

  #countImage(path: string): void {
    this.#imageCount += 1;
    if (this.#imageCount <= this.#maxImages) return;
    throw invalidRequest(path, `${path}: a request may hold ${this.#maxImages} images.`);
  }

  #countDocument(turn: Turn | undefined, path: string): void {
    this.#documentCount = turn === this.#turn ? this.#documentCount + 1 : 1;
    this.#turn = turn;
    if (this.#documentCount <= mostDocuments) return;
    throw invalidRequest(
      path,
      `${path}: a turn of the user may hold ${mostDocuments} files. User messages in a row are ` +
        "one turn.",
    );
  }
}

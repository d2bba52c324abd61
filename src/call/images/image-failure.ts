/** Why an image could not be fetched, in words for the caller. */
export class ImageFailure extends Error {
  override readonly name = "ImageFailure";
}

/** Why an image could not be read: words for the caller, who chose the address. */
export class ImageFailure extends Error {
  override readonly name = "ImageFailure";
}

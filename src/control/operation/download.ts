export interface DownloadText {
  readonly contentType: string;
  readonly fileName: string;
  /** Produced as it is read: whoever stops reading stops the work. */
  readonly chunks: AsyncGenerator<string>;
}

/** An answer that is too long to be held: text that is written while it is read. */
export class Download implements DownloadText {
  readonly contentType: string;
  readonly fileName: string;
  readonly chunks: AsyncGenerator<string>;

  constructor({ contentType, fileName, chunks }: DownloadText) {
    this.contentType = contentType;
    this.fileName = fileName;
    this.chunks = chunks;
  }
}

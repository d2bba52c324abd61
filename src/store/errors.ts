/** The database cannot be used now: locked, gone, full or broken. A retry may help. */
export class StorageUnavailable extends Error {
  override readonly name: string = "StorageUnavailable";
}

/** The id or unique name is taken. */
export class AlreadyExists extends Error {
  override readonly name = "AlreadyExists";
}

/** The entity was changed or removed since it was read. */
export class RevisionConflict extends Error {
  override readonly name = "RevisionConflict";
}

/** The entity cannot be removed while others refer to it. */
export class StillInUse extends Error {
  override readonly name = "StillInUse";
}

/** The cursor was not returned by a list. */
export class InvalidCursor extends Error {
  override readonly name = "InvalidCursor";
}

/** The rows are invalid, so the database will never accept them. */
export class RefusedRows extends Error {
  override readonly name = "RefusedRows";
}

/** The database is unusable, and a retry does not help. */
export class UnusableDatabase extends StorageUnavailable {
  override readonly name: string = "UnusableDatabase";
}

/** A file that the URL of the database names cannot be read. */
export class UnreadableUrlFile extends UnusableDatabase {
  override readonly name = "UnreadableUrlFile";

  /** `setting`: such as `sslrootcert of storage.url`. */
  constructor(setting: string, reason: string) {
    super(`${setting} names a file that cannot be read: ${reason}`);
  }
}

/** The schema of the database is not the one of this version of Sluice. */
export class OtherSchema extends UnusableDatabase {
  override readonly name = "OtherSchema";
}

/** The database does not belong to this installation. */
export class WrongDatabase extends UnusableDatabase {
  override readonly name = "WrongDatabase";
  /** What is wrong with it, as a phrase that follows "the database". */
  readonly what: string;
  /** What to do, in sentences. */
  readonly advice: string;

  constructor(path: string, what: string, advice: string) {
    super(`the database ${path} ${what}. ${advice}`);
    this.what = what;
    this.advice = advice;
  }
}

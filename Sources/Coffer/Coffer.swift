// The public types of Coffer, floor by floor: from what a program meets first down to SQLite. Each
// stands in the folder that the line names; `RoomTests` compares this page with the sources.
//
// ── What a program uses ────────────────────────────────────────────────────────────────────────
// Store          Store  Configuration  OpenMode  Location  StoreKey  KeyID  StoreError
//                ReadTransaction  WriteTransaction  Reading  TransactionMode  TransactionAccess
//                ReadTable  WriteTable
//                StoreSnapshot  Migration  MigrationProgress  VersionStep  BlobChunks
//                StoreStatistics  WriteStatistics  CheckpointStatistics  RunningWrite
//                BucketCacheStatistics
//                Interruption  StorePool  StorePoolStatistics
//                StoreTracer  TransactionSpan  TracedTransaction
// Keyrings       StoreKeys  KeyCredential  NewSlot  KeyCost  KeySlot  Keyring
// Records        Record  Exemplified  RecordAccess  RecordAccessReport  ColumnEncoding
//                DateEncoding  Index  Default  Reference  SchemaDifference
//                CheckConstraint  Collation  Trigger  Generated  TableAlteration
//                Query  QueryOrder  Condition  Join  TextMatch  RecordUpdate  RecordStream
//                Calculation  NumericProperty  NestedQuery  Grouping  Aggregation  GroupCondition
//                JSONPath
//                FullTextIndex  FullTextPattern  FullTextTokenizer
//                Lazy  LazyValue  BorrowedRow  PropertyColumn
// Buckets        Bucket  BucketEntry  BucketCodec  BucketInformation  BucketCache  Setting
//                BucketKey  PrefixedBucketKey  TextBucketKey  CompositeKey  BucketKeyType
//                KeyRange  ScanOrder  Expiration  RemainingLifetime
//                AttachmentBucket  AttachmentInformation  AttachmentUpload  AttachmentReader
//                AttachmentWriter  AttachmentChunks
// Observation    ObservedValues  ObservationToken  ObservedDifferences  RowDifference
//                ObservedChanges  ChangeEvent  ChangedRow  ChangeBatch  ChangeToken
//
// ── What an operator uses ──────────────────────────────────────────────────────────────────────
// Verification   VerificationScope  VerificationProgress  VerificationReport  DamagedPage
//                PageContent  PageRole
// Copies         CopyProgress  CopyReport  CompactReport
// Recovery       RestoreReport  SalvageReport  RebuildProgress
// Rotation       RotationReport  RotationProgress  RootKeyPlan  KeyringEnablingReport
// Rekey          RekeyReport
// Files          StoreFileStatus  CipherProfile  CipherInformation  CipherLogLevel  Engine  Release
//
// ── SQL, one floor down ────────────────────────────────────────────────────────────────────────
// Connection     Connection  CheckpointMode  CheckpointResult  BusyPolicy  InterruptHandle  Limit
//                TraceEvent
// Statements     SQL  Statement  Cursor  Row  RowChange  RowFilter  RowOrder  ScriptControl
// Values         Value  ValueConvertible  StorageClass  CoercedValue  CoercedRow
// Tables         ColumnDefinition  ColumnInformation  ForeignKeyInformation  IndexInformation
//                SchemaObject  FourCharacterCode
// Functions      FunctionArguments  FunctionOptions  FunctionError  Aggregate  WindowFunction
// Full text      FullTextCommand  Tokenizer  TextToken  WordTokenizer  StopWordTokenizer
// Blobs          BlobReader  BlobWriter

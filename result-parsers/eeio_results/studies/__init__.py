"""The papers that the suite grew from: their questions, asked of data. One file a paper."""

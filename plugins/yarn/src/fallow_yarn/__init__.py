"""The Hadoop YARN plugin of Fallow."""

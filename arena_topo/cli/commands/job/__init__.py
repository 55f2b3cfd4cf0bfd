"""Commands about one training job."""

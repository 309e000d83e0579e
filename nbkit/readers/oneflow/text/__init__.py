"""What the lines of a OneFlow log say."""
